import { SkeinError } from "@skein/tensor-core";

/**
 * Thrown if the bytes received from a peer are not the frames that the peer sent. Close the link, because the following
 * bytes cannot be trusted.
 */
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

/** Thrown if coded bytes were not written by the encoder of the lossless codec. */
export class CodedPayloadError extends SkeinError {
  override name = "CodedPayloadError";

  constructor(what: string) {
    super(
      "environment",
      "coded-payload",
      `a coded payload cannot be decoded: ${what}; it was damaged or truncated, or coded by another build, so close the link`,
    );
  }
}
