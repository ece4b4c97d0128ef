/**
 * A schema of any library that follows Standard Schema: zod, valibot, arktype and others.
 *
 * Source: standardschema.dev, version 1.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    /** The library that it is of. */
    readonly vendor: string;
    readonly validate: (value: unknown) => Validated<Output> | Promise<Validated<Output>>;
    /** For types only. */
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** A value with its defaults filled in, or what is wrong with it. */
type Validated<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

/** What a schema says is wrong. */
export interface SchemaIssue {
  readonly message: string;
  /** From the value down, as keys or as objects that hold one. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** What a schema makes of a value. */
export type SchemaOutput<Schema extends StandardSchema> = NonNullable<Schema["~standard"]["types"]>["output"];

/** The keys of an issue's path. */
export const keysOf = ({ path = [] }: SchemaIssue): string[] =>
  path.map((segment) => String(typeof segment === "object" ? segment.key : segment));
