import type { z } from "zod";
import { RendezvousError } from "./errors.ts";

/** Encodes and decodes messages of one type. `decode` throws RendezvousError `control-message` for any other bytes. */
export interface MessageCodec<Message> {
  encode(message: Message): Uint8Array;
  decode(bytes: Uint8Array): Message;
}

/** Creates a codec from a serializer and a schema, which checks every decoded message. */
export const checkedCodec = <Message>(
  name: string,
  schema: z.ZodType<Message>,
  serializer: { readonly encode: (message: Message) => Uint8Array; readonly decode: (bytes: Uint8Array) => unknown },
): MessageCodec<Message> => ({
  encode: serializer.encode,
  decode: (bytes) => {
    const fault = (what: string, cause?: unknown): RendezvousError =>
      new RendezvousError(
        "control-message",
        `${bytes.byteLength} bytes are not ${name}: ${what}; run the same version of Skein on all hosts`,
        { cause },
      );
    let value: unknown;
    try {
      value = serializer.decode(bytes);
    } catch (error) {
      throw fault("they cannot be decoded", error);
    }
    const result = schema.safeParse(value);
    if (result.success) return result.data;
    const { path, message } = result.error.issues[0]!;
    throw fault(`${path.length === 0 ? "they are wrong" : `${path.join(".")} is wrong`}: ${message}`);
  },
});
