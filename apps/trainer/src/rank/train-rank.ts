import { openBlas } from "@skein/blas/node";
import { hostname } from "node:os";
import { PartWriter } from "@skein/checkpoints/node";
import { agreeOnFacts, hostsOf } from "@skein/collectives";
import type { PlacedLane } from "@skein/data";
import { EvaluationReader } from "@skein/data/node";
import { batchPartOf, everyRankAxis, type Job, meshGroups, meshOf, supportsKeyValueCache } from "@skein/job/node";
import {
  type AnyModel,
  buildParts,
  type DeviceState,
  evaluationOrder,
  type ExchangePlan,
  isDue,
  isPlanned,
  keptPlan,
  learnedParams,
  makeEvaluation,
  planBasis,
  planNames,
  type PlanWorld,
  scheduleOffsetOf,
  taskOf,
  withPlannedSchedule,
} from "@skein/step/node";
import { type Backend, type Communicator, SpanRecorder } from "@skein/tensor-core";
import { openBackend } from "../backend/backend.ts";
import { buildModel } from "../preparation/build-model.ts";
import type { RankInput, RankMessage } from "./messages.ts";
import { loadOwnParts } from "../modules/own-parts.ts";
import { partsOfRecordings } from "../modules/program-parts.ts";
import { modelOf } from "../modules/traced-model.ts";
import { type PlannedExperts, planExperts } from "../planning/plan-experts.ts";
import { planExpertSchedule } from "../planning/plan-expert-schedule.ts";
import { planRun } from "../planning/plan-run.ts";
import type { ProfileInput } from "../planning/profile-steps.ts";
import { rankFacts } from "./rank-facts.ts";
import { joinRank } from "./join-rank.ts";
import { RankReport } from "./rank-report.ts";
import { copyParts, firstState, sliceGatherer } from "./rank-state.ts";
import { makeSampleOutputs, type SampleOutputs } from "../samples/sample-outputs.ts";
import type { StepTrace } from "./step-meter.ts";
import { StopSignal } from "./stop-signal.ts";
import { timedCommunicator, type WaitClock } from "./timed-communicator.ts";
import type { RankRun } from "./rank-run.ts";
import { trainLoop } from "./train-loop.ts";

/** Function that injects a fault before a step, in tests. @returns the state that the step consumes. */
export type Fault = (state: DeviceState, step: number, backend: Backend) => Promise<DeviceState>;

/** Runs one rank of a job: connects it to all other ranks, and trains until the last step. */
export const trainRank = async (
  input: RankInput,
  post: (message: RankMessage) => void,
  fault?: Fault,
): Promise<void> => {
  const { connection, module, blas, threads } = input;
  const { backend, close } = await openBackend(input.backend, {
    memory: connection.memory,
    module,
    blas: blas && openBlas(blas),
    threads,
  });
  const report = new RankReport(connection.rank, input.job.ranks, post);
  /** Positions in the training stream, one per lane, for each step whose state is being written. */
  const lanes = new Map<number, readonly PlacedLane[] | undefined>();
  const writer = new PartWriter((step, files) => {
    report.saved(step, files, lanes.get(step));
    lanes.delete(step);
  });
  try {
    await trainOn(input, backend, { writer, lanes }, report, fault);
  } catch (error) {
    // A checkpoint that is being written is completed even if later steps fail. An error of the writer is ignored,
    // because it is not the cause of this failure.
    await writer.idle().catch(() => undefined);
    throw error;
  } finally {
    await close();
    writer.close();
  }
};

/**
 * State of checkpoint saving: writer of this rank's checkpoint files, and the stream positions to report when the files
 * of a step are written, by step.
 */
interface Saving {
  readonly writer: PartWriter;
  readonly lanes: Map<number, readonly PlacedLane[] | undefined>;
}

const trainOn = async (
  input: RankInput,
  backend: Backend,
  { writer, lanes }: Saving,
  report: RankReport,
  fault?: Fault,
): Promise<void> => {
  const { job, connection, data, totalSteps, stepOffset, output, resume } = input;
  const { rank, worldSize } = connection;
  const waitClock: WaitClock = { seconds: 0 };
  const world = timedCommunicator(await joinRank(connection), waitClock);
  const communicators = communicatorsOf(job, world);
  if (worldSize > 1) await agreeOnFacts(world, await rankFacts(input, backend));
  const planWorld = await planWorldOf(input, world);
  const { plan: reusedPlan, remarks } = keptPlan(input.plan, job, planWorld, input.boundPlans);
  for (const remark of remarks) report.remark(remark);
  const measured = { job, backend, communicators, rank, train: data.train };
  // The schedule is planned first, because the model depends on it.
  const schedule = isDue("expertSchedule", job, reusedPlan) ? await planExpertSchedule(measured) : undefined;
  const shared = withPlannedSchedule(job, schedule ?? reusedPlan?.expertSchedule);
  const experts = await plannedExperts({ ...measured, job: shared }, reusedPlan);
  const program = input.recordings && partsOfRecordings(input.recordings);
  const model = await buildModel(shared, taskOf(data), {
    program,
    given: input.traced && modelOf(input.traced),
    experts: experts?.plan ?? reusedPlan?.experts,
  });
  const scheduleOffset = scheduleOffsetOf(job, stepOffset);
  const own = await loadOwnParts(job, { totalSteps, offset: scheduleOffset }, program);
  const ingredients = { job, model, totalSteps, scheduleOffset, train: data.train, own };
  let plan = reusedPlan;
  if (planNames.some((name) => isDue(name, job, reusedPlan))) {
    const agreed = await planRun(
      { ...measured, parts: buildParts(ingredients, reusedPlan) },
      reusedPlan,
      { schedule, experts },
      (name) => planBasis(name, job, planWorld),
    );
    report.planned(agreed);
    ({ plan } = agreed);
  } else if (JSON.stringify(reusedPlan) !== JSON.stringify(input.plan))
    report.planned({ plan: reusedPlan ?? {}, remark: "" });
  const parts = buildParts(ingredients, plan);
  const trace = traceOf(input);
  const evaluation = makeEvaluation(parts.model, backend, { mesh: parts.mesh, communicators });
  const heldOut = new EvaluationReader(data.test, {
    ...evaluationOrder(job, parts.model, data.test.count, batchPartOf(job, rank)),
    damaged: (image) => report.damaged(image),
  });
  const samples = await samplesOf(input, parts.model, backend, report);
  const gather = sliceGatherer(backend, communicators);
  const sentBefore = world.bytesSent();
  const step = await trainLoop(await firstState(input, rank, parts, backend, communicators, trace?.recorder), {
    job,
    parts,
    backend,
    communicators,
    world,
    waitClock,
    rank,
    train: data.train,
    augmentation: data.augmentation,
    predicts: data.predicts,
    totalSteps,
    firstStep: resume?.step ?? 0,
    stepOffset,
    best: resume?.best,
    lanes: resume?.lanes,
    stop: new StopSignal(input.stop),
    output,
    stepsOnly: input.stepsOnly,
    trace,
    plan,
    evaluate: async (state, done) => {
      const evaluated = { params: learnedParams(state), model: state.model };
      if (samples !== undefined) report.sampled(done, await samples.show(evaluated));
      return evaluation(evaluated, heldOut.batches());
    },
    checkpoints: {
      save: async (state, done, placed) => {
        await writer.idle(); // finish writing before another copy of the state is made
        lanes.set(done, placed);
        writer.begin({
          output,
          step: done,
          parts: await copyParts(state, { job, layout: parts, gather }, rank, backend),
        });
      },
      look: () => writer.look(),
      idle: () => writer.idle(),
    },
    report,
    beforeStep: fault && ((state, number) => fault(state, number, backend)),
  }).finally(() => heldOut.close());
  gather.release();
  samples?.release();
  report.done(step, world.bytesSent() - sentBefore, trace?.recorder.spans ?? []);
};

/**
 * Builds the sample outputs of this rank's share of the samples. Undefined: the job displays no samples, or the model
 * is sharded over ranks.
 */
const samplesOf = async (
  { job, data, connection, sampleKind: kind }: RankInput,
  model: AnyModel,
  backend: Backend,
  report: RankReport,
): Promise<SampleOutputs | undefined> => {
  const { samples } = job.evaluation;
  if (samples === undefined) return undefined;
  if (kind !== undefined)
    return makeSampleOutputs(
      { model, usesKeyValueCache: supportsKeyValueCache(job, model) },
      backend,
      { ...data, kind },
      samples,
      {
        rank: connection.rank,
        ranks: job.ranks,
      },
    );
  report.remark(
    "evaluation.samples: no samples are shown, because ranks share this model and each rank has only a part of it",
  );
  return undefined;
};

/**
 * Returns the properties of a run, in addition to its job, on which its plans depend: trained parameters and hosts.
 * Ranks exchange host names only if the job or its checkpoint has plans.
 */
const planWorldOf = async ({ job, plan, trainedHash }: RankInput, world: Communicator): Promise<PlanWorld> => {
  const isNeeded = world.worldSize > 1 && (plan !== undefined || isPlanned(job));
  return { trainedHash, hosts: isNeeded ? hostsOf(await world.exchangeTexts(hostname())) : [[0]] };
};

/** Plans how tokens are sent to experts. Undefined: no plan is due. */
const plannedExperts = async (
  input: Omit<ProfileInput, "parts">,
  known: ExchangePlan | undefined,
): Promise<PlannedExperts | undefined> => {
  const { model } = input.job;
  return model.kind === "gpt" && model.experts !== undefined && isDue("experts", input.job, known)
    ? planExperts({ ...input, experts: model.experts, width: model.width })
    : undefined;
};

/**
 * Returns the recorder of spans, and the steps to record. Undefined: no trace was requested. Times of different hosts
 * are comparable only if the clocks of the hosts agree.
 */
const traceOf = ({ trace }: RankInput): StepTrace | undefined =>
  trace && {
    recorder: new SpanRecorder(() => performance.now(), trace.originMilliseconds - performance.timeOrigin),
    steps: trace.steps,
    detailEvery: trace.detailEvery,
  };

/** Creates one communicator per axis of the job's mesh. */
const communicatorsOf = (job: Job, world: Communicator): RankRun["communicators"] => {
  const { [everyRankAxis(meshOf(job))]: _, ...others } = meshGroups(job);
  return {
    ...Object.fromEntries(Object.entries(others).map(([axis, groups]) => [axis, world.split(groups, axis)])),
    [everyRankAxis(meshOf(job))]: world,
  };
};
