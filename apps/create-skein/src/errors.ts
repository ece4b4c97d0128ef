/** A user error in one line: what is wrong, the rule, the cure. */
export class CreateError extends Error {
  override name = "CreateError";
}
