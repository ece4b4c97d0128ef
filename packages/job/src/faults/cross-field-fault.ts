/** A violated rule between fields of a job. */
export interface CrossFieldFault {
  readonly path: readonly string[];
  readonly rule: string;
}
