/** A rule between fields that a job breaks. */
export interface CrossFieldFault {
  readonly path: readonly string[];
  readonly rule: string;
}
