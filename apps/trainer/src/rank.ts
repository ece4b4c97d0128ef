import { hostname } from "node:os";
import { parentPort, workerData } from "node:worker_threads";
import { openBlas } from "@skein/blas/node";
import { agreeOnFacts } from "@skein/collectives";
import { joinWorld } from "@skein/collectives/node";
import type { WebGpuBackend } from "@skein/gpu-kernels";
import {
  type Backend,
  type Communicator,
  type Communicators,
  type DeviceArray,
  flattenTree,
  jit,
  leafPaths,
  type NdArray,
  randomKey,
  SpanRecorder,
  type Tracer,
  unflattenTree,
} from "@skein/tensor-core";
import { openBackend } from "./backend.ts";
import { partContent, rankFile, readPart, sharedFile } from "./checkpoint.ts";
import { buildModel } from "./build.ts";
import { describeError } from "./errors.ts";
import { evaluationBatch, makeEvaluation } from "./evaluate.ts";
import { nodeFiles } from "./files.ts";
import type { Job } from "./job.ts";
import type { RankInput, RankMessage } from "./messages.ts";
import { taskOf } from "./modules/task.ts";
import { modelOf } from "./modules/traced-model.ts";
import { PartWriter } from "./part-writer.ts";
import { isPlanned } from "./planning/exchange-plan.ts";
import { planTogether } from "./planning/plan-together.ts";
import { rankFacts } from "./rank-facts.ts";
import { StopSignal } from "./stop-signal.ts";
import { timedCommunicator, type WaitClock } from "./timed-communicator.ts";
import { type LoopInput, trainLoop } from "./train-loop.ts";
import { buildParts, dataAxis, type DeviceState, initState, meshGroups, type Parts, splitLeaves } from "./train-state.ts";

/** One clock for the threads of a process; between processes, as far as their hosts' clocks agree. @param origin milliseconds since 1970. */
const tracerFrom = (origin: number): SpanRecorder => new SpanRecorder(() => performance.now(), origin - performance.timeOrigin);

const download = async (leaves: ReadonlyMap<string, DeviceArray>, backend: Backend): Promise<Map<string, NdArray>> => {
  const downloaded = new Map<string, NdArray>();
  for (const [path, leaf] of leaves) downloaded.set(path, await backend.download(leaf));
  return downloaded;
};

/** What a test wants to go wrong. */
const troubleOf = ({ trouble, connection: { rank } }: RankInput, backend: Backend): LoopInput["beforeStep"] =>
  trouble?.rank !== rank
    ? undefined
    : async (step, state) => {
        if (step !== trouble.step) return state;
        if (trouble.kind === "flip-bit") return withFlippedBit(state, backend);
        if (trouble.kind === "kill") process.kill(process.pid, "SIGKILL");
        else (backend as WebGpuBackend).device.gpu.destroy();
        return state;
      };

/** As a fault of the memory does it: one bit of one number, high enough that no rounding takes it away. */
const withFlippedBit = async (state: DeviceState, backend: Backend): Promise<DeviceState> => {
  const { leaves, structure } = flattenTree<DeviceArray>(state.params);
  const array = await backend.download(leaves[0]!);
  array.bytes()[2]! ^= 1;
  backend.free(leaves[0]!);
  return { ...state, params: unflattenTree(structure, [backend.upload(array), ...leaves.slice(1)]) };
};

/** A new state, or that of a checkpoint. All ranks make the same one, but for residuals. */
const firstState = async (
  { job, resume }: RankInput,
  rank: number,
  parts: Parts,
  backend: Backend,
  tracer: Tracer | undefined,
): Promise<DeviceState> => {
  const compiled = jit(initState(parts), backend, { mesh: parts.mesh, name: "initial state", ...(tracer && { tracer }) });
  const fresh = (await compiled(randomKey(job.seed) as never)) as unknown as DeviceState;
  compiled.release();
  if (resume === undefined) return fresh;
  // Checked once more: the host may have looked at another copy, or another hour.
  const wanted = [sharedFile, ...(splitLeaves(fresh).own.size > 0 ? [rankFile(rank)] : [])];
  const files = resume.files.filter(({ name }) => wanted.includes(name));
  const saved = new Map(files.flatMap((file) => [...readPart(nodeFiles, resume.folder, file)]));
  const { leaves, structure } = flattenTree<DeviceArray>(fresh);
  return unflattenTree(
    structure,
    leafPaths(fresh).map((path, i) => {
      const array = saved.get(path);
      if (array === undefined) return leaves[i]!; // nothing is on its way in a saved state
      backend.free(leaves[i]!);
      return backend.upload(array);
    }),
  );
};

const run = async (input: RankInput, post: (message: RankMessage) => void): Promise<void> => {
  const { connection, module, blas } = input;
  const { backend, close } = await openBackend(input.backend, { memory: connection.memory, module, blas: blas && openBlas(blas) });
  const writer = new PartWriter((step, files) => post({ type: "saved", step, files }));
  try {
    await trainOn(input, backend, writer, post);
  } catch (error) {
    // A checkpoint that is being written is whole whatever became of the steps after it; what the writing fails with is not the cause.
    await writer.idle().catch(() => undefined);
    throw error;
  } finally {
    close();
    writer.close();
  }
};

/** The communicator of each axis of the job's mesh. */
const communicatorsOf = (job: Job, world: Communicator): Communicators & { readonly [dataAxis]: Communicator } => {
  const { [dataAxis]: _, ...others } = meshGroups(job);
  return { ...Object.fromEntries(Object.entries(others).map(([axis, groups]) => [axis, world.split(groups, axis)])), [dataAxis]: world };
};

/** Settle whether the next step is recorded, once one is done: of one that was not in detail, there is no span yet. */
const recordNext = (
  tracer: SpanRecorder,
  { steps, detailEvery }: NonNullable<RankInput["trace"]>,
  { step, seconds, exposedSeconds }: { readonly step: number; readonly seconds: number; readonly exposedSeconds: number },
  firstStep: number,
): void => {
  const isWanted = step <= firstStep + steps;
  if (isWanted && !tracer.recording) {
    const endSeconds = tracer.now();
    const args = { exposedMilliseconds: 1000 * exposedSeconds };
    tracer.spans.push({ name: `step ${step}`, track: "steps", startSeconds: endSeconds - seconds, endSeconds, args });
  }
  tracer.recording = step < firstStep + steps && (step - firstStep) % detailEvery === 0;
};

/** Spans of one message: a trace of many steps is larger than a message may be. */
const spansAtOnce = 10_000;

const trainOn = async (input: RankInput, backend: Backend, writer: PartWriter, post: (message: RankMessage) => void): Promise<void> => {
  const { job, connection, data, totalSteps, output, resume, trace } = input;
  const { rank, worldSize } = connection;
  const waitClock: WaitClock = { seconds: 0 };
  const communicators = communicatorsOf(job, timedCommunicator(joinWorld(connection), waitClock));
  if (worldSize > 1) await agreeOnFacts(communicators[dataAxis], await rankFacts(input, backend));
  const model = await buildModel(job.model, taskOf(data), input.traced && modelOf(input.traced));
  let { plan } = input;
  if (plan === undefined && isPlanned(job)) {
    const agreed = await planTogether({ job, parts: buildParts(job, model, totalSteps), backend, communicators, rank, train: data.train });
    if (rank === 0) post({ type: "planned", ...agreed });
    ({ plan } = agreed);
  }
  const parts = buildParts(job, model, totalSteps, plan);
  const tracer = trace && tracerFrom(trace.originMilliseconds);
  const evaluation = makeEvaluation(parts.model, backend);
  const firstStep = resume?.step ?? 0;
  const sentBefore = communicators[dataAxis].bytesSent();
  const step = await trainLoop(
    await firstState(input, rank, parts, backend, tracer),
    {
      job,
      parts,
      backend,
      communicators,
      waitClock,
      rank,
      train: data.train,
      totalSteps,
      firstStep,
      stop: new StopSignal(input.stop),
      stepsOnly: input.stepsOnly,
      tracer,
      beforeStep: troubleOf(input, backend),
    },
    {
      stepped: ({ position, ...done }) => {
        writer.look();
        if (tracer !== undefined) recordNext(tracer, trace!, done, firstStep);
        if (rank === 0) post({ type: "step", epoch: position.epoch + 1, residentBytes: process.memoryUsage.rss(), ...done });
      },
      updated: (step, update) => {
        if (rank === 0) post({ type: "updated", step, ...update });
      },
      save: async (state, done) => {
        await writer.idle(); // before another copy of the state is made
        const { shared, own } = splitLeaves(state);
        const parts = [];
        if (rank === 0) parts.push({ name: sharedFile, content: partContent(await download(shared, backend)) });
        if (own.size > 0) parts.push({ name: rankFile(rank), content: partContent(await download(own, backend)) });
        writer.begin({ output, step: done, parts });
      },
      saved: () => writer.idle(),
      evaluate: async (state, done) => {
        const began = performance.now();
        const sums = await evaluation(state, data.test, { batchSize: evaluationBatch(job, data.test.count), rank, worldSize });
        post({ type: "evaluated", step: done, ...sums, seconds: (performance.now() - began) / 1000 });
        return sums;
      },
      remark: (text) => {
        if (rank === 0) post({ type: "remark", text });
      },
    },
  );
  const spans = tracer?.spans ?? [];
  for (let first = 0; first < spans.length; first += spansAtOnce) post({ type: "spans", spans: spans.slice(first, first + spansAtOnce) });
  post({
    type: "done",
    step,
    bytesSent: communicators[dataAxis].bytesSent() - sentBefore,
    process: `${hostname()}:${process.pid}`,
    peakMemoryBytes: process.resourceUsage().maxRSS * 1024,
  });
};

// Entry of a rank's thread. It reports every error itself, so that the main thread can name the rank.
const post = (message: RankMessage): void => parentPort!.postMessage(message);
run(workerData as RankInput, post).catch((error: unknown) => post({ type: "failed", error: describeError(error) }));
