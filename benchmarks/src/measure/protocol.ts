/** Request: one line of JSON on the implementation's standard input. */
export type ContestantRequest =
  | { readonly command: "prepare"; readonly problem: string; readonly folder: string }
  | { readonly command: "measure"; readonly seconds: number; readonly iterations: number };

/**
 * Reply: one line of JSON on the implementation's standard output. The harness validates the values in `checks` before
 * timing.
 */
export type ContestantReply =
  | { readonly ok: true; readonly version: string; readonly checks: readonly number[] }
  | { readonly ok: true; readonly milliseconds: readonly number[] }
  | { readonly ok: false; readonly error: string };
