#!/usr/bin/env node
// Reads `package.json` of the parent folder: see apps/trainer/bin/skein-train.js.
import { launch } from "skein-train/launcher";

await launch("skein-profile", import.meta.url);
