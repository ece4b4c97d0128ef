import type { Readable, Writable } from "node:stream";
import { select, text } from "@clack/prompts";
import { defaultTemplate, type Template, templateNames, templates } from "./templates.ts";

/** Where a person sits. */
export interface Terminal {
  readonly input: Readable;
  readonly output: Writable;
}

/** The person went away, by Ctrl-C or Escape. */
export class Cancelled extends Error {
  override name = "Cancelled";
}

const answered = <T>(answer: T): Exclude<T, symbol> => {
  if (typeof answer === "symbol") throw new Cancelled(); // what the library gives for it
  return answer as Exclude<T, symbol>;
};

/** Ask for the folder. @param fault why a folder cannot be taken. @throws Cancelled. */
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

/** Ask what the project begins with. @throws Cancelled. */
export const askTemplate = async (terminal: Terminal): Promise<Template> =>
  answered(
    await select<Template>({
      message: "What will it learn from?",
      initialValue: defaultTemplate,
      options: templateNames.map((value) => ({ value, label: value, hint: templates[value].what })),
      ...terminal,
    }),
  );
