import { ArgumentError, type Communicator } from "@skein/tensor-core";
import type { CollectiveHandle } from "@skein/tensor-core/backend";
import { type Facts, requireSameFacts } from "./facts.ts";
import { checkRequest } from "./requests/check-request.ts";
import { laneCount } from "./control-block/layout.ts";
import { tagOf } from "./control-block/tag.ts";
import type { WorldConnection } from "./control-block/world-connection.ts";
import type { ExpressMeans } from "./express/express-connection.ts";
import type { LaneTransports } from "./lanes/rank-lanes.ts";
import { RankRequests } from "./rank-requests.ts";

/** `Communicator` of a rank with a companion thread; `wait` blocks. */
export interface BlockingCommunicator extends Communicator {
  wait(handle: CollectiveHandle): void;
  exchangeTexts(text: string): readonly string[];
  split(partition: readonly (readonly number[])[], name: string): BlockingCommunicator;
}

/**
 * The part of a partition that holds `rank`.
 *
 * @throws ArgumentError unless every rank of the group stands in one part.
 */
const partOf = (partition: readonly (readonly number[])[], rank: number, worldSize: number): readonly number[] => {
  const named = partition.flat().toSorted((a, b) => a - b);
  if (named.length !== worldSize || named.some((member, i) => member !== i)) {
    throw new ArgumentError(
      `split: ${JSON.stringify(partition)} is not a partition of ${worldSize} ranks; name each of 0 to ${worldSize - 1} once`,
    );
  }
  return partition.find((part) => part.includes(rank))!;
};

const communicatorOf = (requests: RankRequests, group: number, members: readonly number[]): BlockingCommunicator => {
  const { memory, rank: worldRank } = requests.connection;
  const rank = members.indexOf(worldRank);
  const worldSize = members.length;
  const started = Array.from({ length: laneCount }, () => 0);
  return {
    rank,
    worldSize,
    start: (request) => {
      checkRequest(request, { rank, worldSize, memory });
      const lane = request.priority ?? 0;
      // A message between some ranks goes by the number of the next collective of all: the others need not count it.
      const sequence = started[lane]! + 1;
      if (request.kind !== "send-receive") started[lane] = sequence;
      return requests.start(request, tagOf(sequence, request.kind, group));
    },
    wait: (handle) => requests.wait(handle),
    algorithmOf: (handle) => requests.algorithmOf(handle),
    bytesSent: () => requests.bytesSent(),
    members,
    exchangeTexts: (text) => requests.exchangeTexts(text, 0),
    split: (partition, name) => {
      const part = partOf(partition, rank, worldSize).map((position) => members[position]!);
      return communicatorOf(requests, requests.makeGroup(group, partition, name, part), part);
    },
  };
};

/** What the ranks of several processes may have differently, and threads of one cannot. */
const factsOf = ({ preference: { order = "rank", link }, facts }: WorldConnection): Facts => ({
  "order of sums": order,
  "link times": link === undefined ? "those of no link file" : `those of a link file, ${JSON.stringify(link)}`,
  ...facts,
});

/** What ranks of several processes tell each other when they join. */
interface Joining {
  readonly facts: Facts;
  /** To which this rank has a connection that its own thread reads and writes. */
  readonly peers: readonly number[];
}

/**
 * Join a world as the rank that `connection` names. Call in the rank's compute thread; the companion thread, started by
 * the world, carries requests out meanwhile. Between threads `wait` lends a hand: when the companion has not begun, the
 * waiting thread does the work itself, which saves waking another thread.
 *
 * In a world of several processes all ranks join together, and compare what must be the same on all.
 *
 * Regions must lie in the world's memory. `start` costs a few stores and a wake-up. Ranks of a group must start its
 * requests of one priority in the same order, and any two ranks those of all groups that they share.
 *
 * @param travel how this thread reaches the peers, where it can: with transports that make no promises, and whose
 * futures sleep a little in `ready` and settle or fail in time. It then lends a hand as between threads.
 * @param means what this thread reads and writes connections of its own with; without it it has none.
 * @throws RanksDifferError where ranks choose algorithms by different things, or have other facts; CollectiveError
 * where a rank does not join.
 */
export const joinWorld = (
  connection: WorldConnection,
  travel?: LaneTransports,
  means?: ExpressMeans,
): BlockingCommunicator => {
  const requests = new RankRequests(connection, travel);
  const { control } = requests;
  if (connection.companionOnly && !control.unusable) {
    const { express = [], preference } = connection;
    const peers = means === undefined ? [] : express.map(({ peer }) => peer);
    const said = requests
      .exchangeTexts(JSON.stringify({ facts: factsOf(connection), peers } satisfies Joining), 0)
      .map((text) => JSON.parse(text) as Joining);
    try {
      requireSameFacts(
        said.map(({ facts }) => facts),
        connection.rank,
      );
      if (means !== undefined && peers.length > 0)
        requests.openExpress({ peers: said.map((other) => other.peers), order: preference.order ?? "rank" }, means);
    } catch (error) {
      control.failWith(error, 0);
      throw error;
    }
  }
  return communicatorOf(requests, 0, control.membersOf(0));
};
