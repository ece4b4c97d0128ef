/** A user error. The one-line message says what is wrong, states the rule, and suggests a fix. */
export class CreateError extends Error {
  override name = "CreateError";
}
