import type { ContestantProcess } from "../measure/contestant-process.ts";
import { type Summary, summarize } from "@skein/measuring";
import { complaint } from "../problems/check.ts";
import type { Problem } from "../problems/problem.ts";
import { writeProblem } from "../problems/problem-files.ts";
import { makeRow, type Row } from "../report/row.ts";

const rounds = 7;
const warmUp = { seconds: 1, iterations: 2 };
const slice = { seconds: 0.4, iterations: 1 };

/** Implementations of a benchmark: Skein and its peers. */
export interface Field {
  readonly ours: string;
  readonly peers: readonly string[];
  /** Starts an implementation, or returns the reason why the implementation is missing. */
  readonly start: (name: string) => Startable | Promise<Startable>;
  /** Required minimum ratios of Skein's speed to a peer's, by problem and peer. */
  readonly targets: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

type Startable = ContestantProcess | { readonly missing: string };

const measure = async (
  contestant: ContestantProcess,
  budget: { readonly seconds: number; readonly iterations: number },
): Promise<readonly number[]> => {
  const reply = await contestant.ask({ command: "measure", ...budget });
  if (!reply.ok) throw new Error(`${contestant.name}: ${reply.error}`);
  return "milliseconds" in reply ? reply.milliseconds : [];
};

interface Prepared {
  readonly contestant: ContestantProcess;
  readonly samples: number[];
}

/** Returns the first two lines of a library's error message, shortened for a table. */
const brief = (reason: string): string => {
  const line = reason.split("\n").slice(0, 2).join(" ").replace(/\s+/g, " ").trim();
  return line.length > 110 ? `${line.slice(0, 109)}…` : line;
};

/**
 * Times one problem for Skein and every peer, each in a separate process. After validation and warm-up the rounds
 * alternate, each beginning with a different implementation, so that a slow period of the machine affects all
 * implementations equally.
 */
export const benchProblem = async (
  problem: Problem,
  folder: string,
  versions: Record<string, string>,
  { ours, peers, start, targets }: Field,
): Promise<Row[]> => {
  const files = writeProblem(problem, folder);
  const prepared = new Map<string, Prepared>();
  const reasons = new Map<string, string>();
  let agreed: readonly number[] | undefined;
  // Peers start first, because Skein's results must agree with the peers' and not vice versa.
  for (const name of [...peers, ours]) {
    const contestant = await start(name);
    if ("missing" in contestant) {
      reasons.set(name, contestant.missing);
      continue;
    }
    const reply = await contestant.ask({ command: "prepare", problem: problem.name, folder: files });
    const wrong = !reply.ok
      ? `cannot run: ${reply.error}`
      : "checks" in reply
        ? complaint(problem, files, reply.checks, agreed)
        : "gave no numbers to check";
    if (wrong !== undefined || !reply.ok || !("checks" in reply)) {
      reasons.set(name, wrong ?? "");
      contestant.close();
      continue;
    }
    agreed ??= reply.checks;
    versions[name] = reply.version;
    prepared.set(name, { contestant, samples: [] });
  }
  const running = [...prepared.values()];
  try {
    for (const { contestant } of running) await measure(contestant, warmUp);
    for (let round = 0; round < rounds; round++) {
      for (let turn = 0; turn < running.length; turn++) {
        const { contestant, samples } = running[(round + turn) % running.length]!;
        samples.push(...(await measure(contestant, slice)));
      }
    }
  } finally {
    for (const { contestant } of running) contestant.close();
  }
  const rate = problem.kind === "matmul";
  const flops = 2 * (problem.tensors[0]?.shape[0] ?? 0) ** 3;
  const summary = (name: string): Summary | undefined => {
    const samples = prepared.get(name)?.samples;
    return samples && summarize(rate ? samples.map((milliseconds) => flops / milliseconds / 1e6) : samples);
  };
  return peers.map((peer) =>
    makeRow({
      benchmark: problem.name,
      unit: rate ? "GFLOP/s" : "ms",
      better: rate ? "higher" : "lower",
      peer,
      ours: summary(ours),
      theirs: summary(peer),
      target: targets[problem.name]?.[peer],
      note:
        [ours, peer]
          .flatMap((name) => (reasons.has(name) ? [`${name}: ${brief(reasons.get(name)!)}`] : []))
          .join("; ") || undefined,
    }),
  );
};
