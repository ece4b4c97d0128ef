import { test } from "vitest";

// Replaces `test.runIf` and `test.skipIf`. In vitest 5.1.1, `test.runIf(true)` and `test.skipIf(false)` set
// `skip: false` on a test. This overrides the `skip` of a tag, so that tests tagged "full" would always run. The
// replacements leave `skip` unset.
test.skipIf = (condition) => (condition ? test.skip : test);
test.runIf = (condition) => (condition ? test : test.skip);
