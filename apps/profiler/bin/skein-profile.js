#!/usr/bin/env node
// The comment in apps/trainer/bin/skein-train.js explains why this folder has a separate `package.json`.
import { launch } from "skein-train/launcher";

await launch("skein-profile", import.meta.url);
