import { test } from "vitest";

// In vitest 5.1.1 `test.runIf(true)` and `test.skipIf(false)` set `skip: false` on a test, which overrides the `skip`
// of a tag: tests tagged "full" would run in every run. These versions leave `skip` unset.
test.skipIf = (condition) => (condition ? test.skip : test);
test.runIf = (condition) => (condition ? test : test.skip);
