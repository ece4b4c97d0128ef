import { test } from "vitest";

// In vitest 5.1.1 `test.runIf(true)` and `test.skipIf(false)` say `skip: false` of a test, which goes before the `skip`
// of a tag: tests that are tagged "full" would run in every run. So they say nothing.
test.skipIf = (condition) => (condition ? test.skip : test);
test.runIf = (condition) => (condition ? test : test.skip);
