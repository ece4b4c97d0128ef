/** A function of a user's, in a module of theirs. */
export interface ModuleJob {
  readonly kind: "module";
  /** Absolute once the job is loaded. */
  readonly file: string;
  /** Name of the export. */
  readonly export: string;
  /** Passed to it as they are. */
  readonly options: Readonly<Record<string, unknown>>;
  /** SHA-256 of what the file and its imports hold, once the job is loaded. */
  readonly digest?: string | undefined;
}

/** What a program gave to `train()`. */
export interface ProgramJob {
  readonly kind: "program";
  /** SHA-256 of it; of callbacks, which change no number, zeros. */
  readonly digest: string;
}
