#!/usr/bin/env node
import { launch } from "skein-train/launcher";

// The launcher is bundled into this file, so that creating a project does not load all of skein-train first.
await launch("create-skein", import.meta.url);
