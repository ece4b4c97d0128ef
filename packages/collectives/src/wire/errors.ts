import { SkeinError } from "@skein/tensor-core";

/** Bytes of a peer that are not the frames it sent. The link is to be closed: nothing after them can be trusted. */
export class WireError extends SkeinError {
  override name = "WireError";

  constructor(
    code:
      | "not-a-frame"
      | "protocol-version"
      | "frame-header"
      | "frame-length"
      | "frame-checksum"
      | "frame-sequence"
      | "frame-truncated"
      | "frame-seal",
    message: string,
  ) {
    super("environment", code, message);
  }
}

/** Bytes that no `encodeLossless` wrote. */
export class CodedPayloadError extends SkeinError {
  override name = "CodedPayloadError";

  constructor(what: string) {
    super(
      "environment",
      "coded-payload",
      `a coded payload cannot be decoded: ${what}; it was damaged or cut, or coded by another build: close the link`,
    );
  }
}
