import { InvariantError } from "@skein/tensor-core";
import { RanksDisagreeError } from "../errors.ts";
import type { SendHandle, Transport } from "./transport.ts";

interface Message {
  readonly tag: number;
  readonly bytes: Uint8Array;
}

interface Channel {
  readonly messages: Message[];
  sent: number;
  taken: number;
  returned: number;
  /** Callbacks to call at the next change of this channel, which resume waiting ranks. */
  readonly waiting: (() => void)[];
}

const wake = (channel: Channel): void => {
  for (const resume of channel.waiting.splice(0)) resume();
};

/**
 * Creates a world of ranks in one thread, for tests and simulations. Deterministic: every wait is a microtask, so ranks
 * alternate in a fixed order.
 *
 * @param options.sharesMemory whether to pass the sender's memory, as between threads, instead of copies, as over
 * networks. Default: false.
 * @example
 * ```ts
 * const [first] = createMemoryWorld(2);
 * console.log(first!.rank, first!.worldSize); // 0 2
 * ```
 */
export const createMemoryWorld = (
  worldSize: number,
  options: { readonly sharesMemory?: boolean } = {},
): readonly Transport[] => {
  const sharesMemory = options.sharesMemory ?? false;
  const channels = Array.from(
    { length: worldSize * worldSize },
    (): Channel => ({ messages: [], sent: 0, taken: 0, returned: 0, waiting: [] }),
  );
  const channel = (from: number, to: number): Channel => {
    const found = channels[from * worldSize + to];
    if (found === undefined)
      throw new InvariantError(`ranks ${from} and ${to} are not both in a world of ${worldSize}`);
    return found;
  };
  const until = async (link: Channel, ready: () => boolean): Promise<void> => {
    while (!ready()) await new Promise<void>((resolve) => link.waiting.push(resolve));
  };

  return Array.from(
    { length: worldSize },
    (_, rank): Transport => ({
      rank,
      worldSize,
      sharesMemoryWith: () => sharesMemory,
      send: (peer, tag, bytes): SendHandle => {
        const link = channel(rank, peer);
        link.messages.push({ tag, bytes: sharesMemory ? bytes : bytes.slice() });
        link.sent += 1;
        if (!sharesMemory) link.returned += 1;
        wake(link);
        return { peer, count: link.sent };
      },
      receive: async (peer, tag, byteLength) => {
        const link = channel(peer, rank);
        await until(link, () => link.messages.length > 0);
        const message = link.messages.shift()!;
        link.taken += 1;
        if (message.tag !== tag || message.bytes.byteLength !== byteLength) {
          const context = { rank, peer, collective: `collective ${tag}` };
          throw new RanksDisagreeError(
            context,
            `rank ${peer} sent ${message.bytes.byteLength} bytes for collective ${message.tag}, ${byteLength} were expected for collective ${tag}`,
          );
        }
        return message.bytes;
      },
      release: (peer) => {
        const link = channel(peer, rank);
        if (sharesMemory) link.returned += 1;
        if (link.returned > link.sent)
          throw new InvariantError(`rank ${rank} released more messages than rank ${peer} sent`);
        wake(link);
      },
      whenSent: (handle) => {
        const link = channel(rank, handle.peer);
        if (link.returned >= handle.count) return;
        return until(link, () => link.returned >= handle.count);
      },
    }),
  );
};
