import { appendFileSync } from "node:fs";
import { relative } from "node:path";
import type { Reporter, TestCase, TestModule } from "vitest/node";
import { repository } from "./repository.ts";
import type { JournalEntry } from "./stages/test-journal.ts";

const fileOf = (module: TestModule): string => relative(repository, module.moduleId);

type Errors = readonly { readonly stack?: string; readonly message: string }[];

const textsOf = (errors: Errors): string[] => errors.map(({ stack, message }) => stack ?? message);

/** Writes each event of a test run to a file immediately, whereas vitest's JSON report is written only at the end. */
export class JournalReporter implements Reporter {
  private readonly path: string;
  private readonly began = new Map<string, number>();

  constructor(path: string) {
    this.path = path;
  }

  private write(entry: JournalEntry): void {
    appendFileSync(this.path, `${JSON.stringify(entry)}\n`);
  }

  onTestModuleQueued(module: TestModule): void {
    this.began.set(module.moduleId, performance.now());
    this.write({ at: "file-began", file: fileOf(module) });
  }

  onTestCaseReady(test: TestCase): void {
    this.write({ at: "test-began", file: fileOf(test.module), test: test.fullName });
  }

  onTestCaseResult(test: TestCase): void {
    const { state, errors } = test.result();
    this.write({
      at: "test-ended",
      file: fileOf(test.module),
      test: test.fullName,
      status: state === "passed" || state === "failed" ? state : "skipped",
      ...(state === "failed" ? { detail: textsOf(errors).join("\n") } : {}),
    });
  }

  onTestModuleEnd(module: TestModule): void {
    // vitest reports the error of a hook as an error of the suite, not of a test.
    const errors = [module, ...module.children.allSuites()].flatMap((suite) => textsOf(suite.errors()));
    const milliseconds = Math.round(performance.now() - (this.began.get(module.moduleId) ?? performance.now()));
    this.write({ at: "file-ended", file: fileOf(module), milliseconds, errors });
  }

  onTestRunEnd(_: readonly TestModule[], errors: Errors): void {
    this.write({ at: "run-ended", errors: textsOf(errors) });
  }
}
