#!/usr/bin/env node
import { launch } from "skein-train/launcher";

// The launcher is built into this file: who starts a project should not wait for all of skein-train at first.
await launch("create-skein", import.meta.url);
