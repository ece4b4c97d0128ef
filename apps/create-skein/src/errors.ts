/** What a person asked for and cannot have, in one line: what, the rule, the cure. */
export class CreateError extends Error {
  override name = "CreateError";
}
