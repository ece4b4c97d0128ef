import type { Readable, Writable } from "node:stream";
import { select, text } from "@clack/prompts";
import { defaultTemplate, type Template, templateNames, templates } from "./templates.ts";

/** Input and output stream of an interactive terminal. */
export interface Terminal {
  readonly input: Readable;
  readonly output: Writable;
}

/** Thrown when the user cancels a question with Ctrl-C or Escape. */
export class Cancelled extends Error {
  override name = "Cancelled";
}

const answered = <T>(answer: T): Exclude<T, symbol> => {
  if (typeof answer === "symbol") throw new Cancelled(); // the library returns a symbol on cancellation
  return answer as Exclude<T, symbol>;
};

/**
 * Asks the user for the project folder.
 *
 * @param fault Returns the reason why a folder cannot be used, or undefined if it can be used.
 * @throws Cancelled.
 */
export const askFolder = async (fault: (folder: string) => string | undefined, terminal: Terminal): Promise<string> =>
  answered(
    await text({
      message: "Folder of the project?",
      placeholder: "my-run",
      defaultValue: "my-run",
      validate: (folder) => fault(folder === undefined || folder === "" ? "my-run" : folder),
      ...terminal,
    }),
  );

/** Asks the user for the template. @throws Cancelled. */
export const askTemplate = async (terminal: Terminal): Promise<Template> =>
  answered(
    await select<Template>({
      message: "What will it learn from?",
      initialValue: defaultTemplate,
      options: templateNames.map((value) => ({ value, label: value, hint: templates[value].summary })),
      ...terminal,
    }),
  );
