/**
 * A schema from any library that implements Standard Schema, such as zod, valibot or arktype.
 *
 * Source: standardschema.dev, version 1.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    /** Name of the schema library. */
    readonly vendor: string;
    readonly validate: (value: unknown) => Validated<Output> | Promise<Validated<Output>>;
    /** Types of input and output. This property is never set at run time. */
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** Result of a validation: the value with its defaults filled in, or the issues that the schema reports. */
type Validated<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

/** An issue that a schema reports, such as an invalid or missing key. */
export interface SchemaIssue {
  readonly message: string;
  /** Path from the validated value to the issue. Each element is a key or an object that contains a key. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** Type of a value after validation. */
export type SchemaOutput<Schema extends StandardSchema> = NonNullable<Schema["~standard"]["types"]>["output"];

/** Returns the keys of an issue's path. */
export const keysOf = ({ path = [] }: SchemaIssue): string[] =>
  path.map((segment) => String(typeof segment === "object" ? segment.key : segment));
