/** A user error with a one-line message: what is wrong, the rule, and the cure. */
export class CreateError extends Error {
  override name = "CreateError";
}
