import { ArgumentError, type Communicator } from "@skein/tensor-core";
import type { CollectiveHandle } from "@skein/tensor-core/backend";
import { type Facts, requireSameFacts } from "./facts.ts";
import { checkRequest } from "./requests/check-request.ts";
import { laneCount } from "./control-block/layout.ts";
import { tagOf } from "./control-block/tag.ts";
import type { WorldConnection } from "./control-block/world-connection.ts";
import type { ExpressRuntime } from "./express/express-connection.ts";
import type { LaneTransports } from "./lanes/rank-lanes.ts";
import { RankRequests } from "./rank-requests.ts";

/** Communicator of a rank whose requests are executed by a companion thread. `wait` blocks the calling thread. */
export interface BlockingCommunicator extends Communicator {
  wait(handle: CollectiveHandle): void;
  exchangeTexts(text: string): readonly string[];
  split(partition: readonly (readonly number[])[], name: string): BlockingCommunicator;
}

/**
 * Returns the subgroup of `partition` that contains `rank`.
 *
 * @throws ArgumentError unless every rank of the group is in exactly one subgroup.
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
      // A send-receive uses the number of the group's next collective without incrementing it, because ranks that do
      // not take part in the send-receive do not count this request.
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

/**
 * Returns the settings that must be equal on ranks of different processes, by name. Threads of one process always have
 * equal settings.
 */
const factsOf = ({ preference: { order = "rank", link }, facts }: WorldConnection): Facts => ({
  "order of sums": order,
  "link times": link === undefined ? "those of no link file" : `those of a link file, ${JSON.stringify(link)}`,
  ...facts,
});

/** Data that each rank of a world of several processes sends to all other ranks when the ranks join. */
interface JoinData {
  readonly facts: Facts;
  /** Peers that this rank's compute thread reaches by an express connection, without the companion thread. */
  readonly peers: readonly number[];
}

/**
 * Joins a world as the rank of `connection`. Call this function in the rank's compute thread. The companion thread,
 * which the world starts, executes requests while this thread computes. Between threads, `wait` executes a request in
 * the calling thread if the companion has not begun the request. In this case, the time to wake another thread is
 * saved.
 *
 * In a world of several processes, all ranks must join. Ranks then compare the settings that must be equal on all
 * ranks.
 *
 * Operands must be in the world's memory. `start` takes only a few stores and a wake-up of the companion. All ranks of
 * a group must start the group's requests of one priority in the same order. Any two ranks must start the requests of
 * all groups that contain both ranks in the same order.
 *
 * @param laneTransports transports with which this thread reaches the peers without the companion. The transports
 * return futures, not promises. A future sleeps briefly in `ready`, and completes or fails within the timeout. `wait`
 * then executes requests in the calling thread, as between threads. Absent: only the companion thread reaches peers in
 * other processes, except over express connections of `runtime`.
 * @param runtime socket calls with which this thread reads and writes its express connections. Absent: no express
 * connections.
 * @throws RanksDifferError if ranks have different `facts` or different settings for the choice of algorithms;
 * CollectiveError if a rank does not join.
 */
export const createCommunicator = (
  connection: WorldConnection,
  laneTransports?: LaneTransports,
  runtime?: ExpressRuntime,
): BlockingCommunicator => {
  const requests = new RankRequests(connection, laneTransports);
  const { control } = requests;
  if (connection.companionOnly && !control.unusable) {
    const { express = [], preference } = connection;
    const peers = runtime === undefined ? [] : express.map(({ peer }) => peer);
    const joinData = requests
      .exchangeTexts(JSON.stringify({ facts: factsOf(connection), peers } satisfies JoinData), 0)
      .map((text) => JSON.parse(text) as JoinData);
    try {
      requireSameFacts(
        joinData.map(({ facts }) => facts),
        connection.rank,
      );
      if (runtime !== undefined && peers.length > 0)
        requests.openExpress(
          { peers: joinData.map((other) => other.peers), order: preference.order ?? "rank" },
          runtime,
        );
    } catch (error) {
      control.failWith(error, 0);
      throw error;
    }
  }
  return communicatorOf(requests, 0, control.membersOf(0));
};
