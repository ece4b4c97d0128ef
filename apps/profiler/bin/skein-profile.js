#!/usr/bin/env node
// `package.json` beside it: see apps/trainer/bin/skein-train.js.
import { launch } from "skein-train/launcher";

await launch("skein-profile", import.meta.url);
