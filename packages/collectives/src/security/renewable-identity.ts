import { X509Certificate } from "node:crypto";
import { createSecureContext, type Server, type TLSSocket } from "node:tls";
import { identityOf, provesWhat } from "./certificate-names.ts";
import { CertificateError, RevokedPeerError } from "./errors.ts";
import { checkPair, checkRevoked, type Pair, readPair, readRevoked } from "./identity-files.ts";
import { isOlder, type RevocationList, serialOf } from "./revocation-list.ts";
import { type TlsFiles, type TlsIdentity, tlsServerOptions } from "./tls-identity.ts";

export interface RenewalOptions {
  /** Interval at which the files are checked, in addition to a check at each connection. Default: 5 s. */
  readonly reloadMilliseconds?: number;
  /** Called with a one-line description of each problem that prevents the use of the files' contents. */
  readonly onNote?: (line: string) => void;
}

// Minimum interval between two reads of the files. Reading four small files takes about 0.1 ms, on network storage
// several milliseconds, and a peer could connect continually.
const restMilliseconds = 100;

/**
 * Reports a problem with the identity's files one time, after the problem has lasted for some time. Shorter problems
 * are ignored, because they occur while files are being replaced.
 */
class LastingFault {
  readonly #note: (line: string) => void;
  readonly #lastingMilliseconds: number;
  #cause: string | undefined;
  #since = 0;
  #reported = false;

  constructor(note: (line: string) => void, lastingMilliseconds: number) {
    this.#note = note;
    this.#lastingMilliseconds = lastingMilliseconds;
  }

  /**
   * Records that a problem exists, and reports the problem if it has lasted long enough.
   *
   * @param cause identifier of the problem, constant for as long as the problem lasts.
   */
  raise(cause: string, error: unknown): void {
    const now = performance.now();
    if (cause !== this.#cause) {
      this.#cause = cause;
      this.#since = now;
      this.#reported = false;
    } else if (!this.#reported && now - this.#since >= this.#lastingMilliseconds) {
      this.#reported = true;
      this.#note(`the current identity of this process stays in use: ${(error as Error).message}`);
    }
  }

  clear(): void {
    this.#cause = undefined;
  }
}

/**
 * Identity of a process, read from files that may be replaced while the process runs: a renewed certificate with its
 * key, and a longer list of revoked certificates. Each new connection uses the current contents of the files. Existing
 * connections do not change, unless the list revokes the peer's certificate.
 *
 * The identity changes only to a valid newer identity. Files are ignored if they cannot be read, do not match, or are
 * for another authority or role. An older list is also ignored. Files are read and compared instead of watched, because
 * network storage does not report changes. Cost: reads four small files every `reloadMilliseconds`, and at new
 * connections, but at most ten times per second.
 */
export class RenewableIdentity {
  readonly #onNote: (line: string) => void;
  readonly #pairFault: LastingFault;
  readonly #listFault: LastingFault;
  readonly #ownFault: LastingFault;
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #connections = new Map<
    TLSSocket,
    { readonly serial: string; readonly peerName: string; readonly cut: (error: RevokedPeerError) => void }
  >();
  #identity: TlsIdentity;
  #list: RevocationList | undefined;
  #reloadedAt = -Infinity;

  /**
   * Creates a renewable identity that initially equals `identity`.
   *
   * @throws CertificateError if the list of revoked certificates cannot be used.
   */
  constructor(identity: TlsIdentity, { reloadMilliseconds = 5000, onNote = () => undefined }: RenewalOptions = {}) {
    this.#identity = identity;
    const { files, revoked } = identity;
    this.#list =
      revoked === undefined ? undefined : checkRevoked(revoked, identity, files?.revoked ?? "of this process");
    this.#onNote = onNote;
    const lastingFault = (): LastingFault => new LastingFault((line) => this.#onNote(line), reloadMilliseconds / 2);
    [this.#pairFault, this.#listFault, this.#ownFault] = [lastingFault(), lastingFault(), lastingFault()];
    if (files !== undefined) this.#timer = setInterval(() => this.#reload(files), reloadMilliseconds).unref();
  }

  /** Returns the identity for a new connection. Returns the same object until the contents of the files change. */
  current(): TlsIdentity {
    const { files } = this.#identity;
    if (files !== undefined && performance.now() - this.#reloadedAt >= restMilliseconds) this.#reload(files);
    return this.#identity;
  }

  /** Makes `server` use the current identity, from its next connection on. */
  renew(server: Server): void {
    let shown = this.#identity;
    server.prependListener("connection", () => {
      const identity = this.current();
      if (identity === shown) return;
      shown = identity;
      server.setSecureContext(tlsServerOptions(identity));
    });
  }

  /**
   * Watches a connection after its TLS handshake.
   *
   * @param cut called when the certificate of the peer is revoked; immediately if it was revoked during the handshake.
   */
  guard(socket: TLSSocket, cut: (error: RevokedPeerError) => void): void {
    const certificate = socket.getPeerX509Certificate();
    if (certificate === undefined) return; // A peer without a certificate is refused elsewhere.
    const peerName = provesWhat(identityOf(certificate.subjectAltName)).replace(/^to be /, "");
    this.#connections.set(socket, { serial: serialOf(certificate.serialNumber), peerName, cut });
    socket.once("close", () => this.#connections.delete(socket));
    this.#cutRevoked();
  }

  /** Stops checking the files. */
  close(): void {
    clearInterval(this.#timer);
    this.#connections.clear();
  }

  #reload(files: TlsFiles): void {
    this.#reloadedAt = performance.now();
    this.#reloadList(files);
    this.#reloadPair(files);
    const { certificate } = this.#identity;
    if (this.#list?.serials.has(serialOf(new X509Certificate(certificate).serialNumber)) !== true)
      return this.#ownFault.clear();
    const cure = "issue a new one with skein-train certs renew";
    this.#ownFault.raise(
      certificate,
      new Error(`certificate ${files.certificate} was revoked and was not replaced; others refuse it: ${cure}`),
    );
  }

  #reloadPair(files: TlsFiles): void {
    let pair: Pair | undefined;
    try {
      pair = readPair(files);
      const { certificate, key, authority } = this.#identity;
      if (pair.certificate !== certificate || pair.key !== key || pair.authority !== authority) {
        checkPair(pair, files);
        this.#checkRenewed(pair, files);
        const renewed = { ...this.#identity, certificate: pair.certificate, key: pair.key };
        createSecureContext(tlsServerOptions(renewed)); // Throws here if TLS would throw at a connection.
        if (pair.certificate !== certificate || pair.key !== key) this.#identity = renewed;
      }
      this.#pairFault.clear();
    } catch (error) {
      this.#pairFault.raise(pair === undefined ? (error as Error).message : JSON.stringify(pair), error);
    }
  }

  /**
   * Checks that a renewed certificate is for the same process.
   *
   * @throws CertificateError if the certificate and key are valid, but not for this process.
   */
  #checkRenewed(pair: Pair, files: TlsFiles): void {
    const [authority, ownAuthority] = [
      new X509Certificate(pair.authority),
      new X509Certificate(this.#identity.authority),
    ];
    if (authority.fingerprint256 !== ownAuthority.fingerprint256)
      throw new CertificateError(
        `${files.authority} is another authority than the one with which this process started, and other processes would not know it; start the whole run again to change it`,
      );
    const certificate = new X509Certificate(pair.certificate);
    const [proven, due] = [certificate, new X509Certificate(this.#identity.certificate)].map(({ subjectAltName }) =>
      provesWhat(identityOf(subjectAltName)),
    );
    if (proven !== due)
      throw new CertificateError(
        `certificate ${files.certificate} proves ${proven}, but this process has to prove ${due}; use its own certificate`,
      );
    if (this.#list?.serials.has(serialOf(certificate.serialNumber)) === true)
      throw new CertificateError(
        `certificate ${files.certificate} was revoked, as ${files.revoked} says; issue a new one with skein-train certs renew`,
      );
  }

  #reloadList(files: TlsFiles): void {
    let text: string | undefined;
    try {
      text = readRevoked(files);
      if (text === undefined && this.#list !== undefined)
        throw new CertificateError(`the list of revoked certificates ${files.revoked} is gone; put it back`);
      if (text !== undefined && text !== this.#list?.text) this.#applyList(text, files.revoked!);
      this.#listFault.clear();
    } catch (error) {
      this.#listFault.raise(text ?? (error as Error).message, error);
    }
  }

  #applyList(text: string, path: string): void {
    const list = checkRevoked(text, this.#identity, path);
    if (this.#list !== undefined && isOlder(list, this.#list))
      throw new CertificateError(
        `the list of revoked certificates ${path} (${described(list)}) is older than the one in use (${described(this.#list)}); use the newest list`,
      );
    const identity = { ...this.#identity, revoked: text };
    createSecureContext(tlsServerOptions(identity));
    this.#identity = identity;
    this.#list = list;
    this.#cutRevoked();
  }

  #cutRevoked(): void {
    for (const [socket, { serial, peerName, cut }] of this.#connections) {
      if (this.#list?.serials.has(serial) !== true) continue;
      this.#connections.delete(socket);
      cut(new RevokedPeerError(`its certificate (of ${peerName}, serial number ${serial}) was revoked`));
    }
  }
}

const described = ({ number, thisUpdate }: RevocationList): string =>
  `${number === undefined ? "" : `number ${number}, `}of ${new Date(thisUpdate).toUTCString()}`;
