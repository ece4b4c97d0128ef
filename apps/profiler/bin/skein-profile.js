#!/usr/bin/env node
// The separate `package.json` of this folder is explained in apps/trainer/bin/skein-train.js.
import { launch } from "skein-train/launcher";

await launch("skein-profile", import.meta.url);
