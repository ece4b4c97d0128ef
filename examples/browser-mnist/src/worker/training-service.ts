import { fetchMnist } from "@skein/data";
import { ArgumentError } from "@skein/tensor-core";
import type { BackendWish, Command, Report, Settings } from "../messages.ts";
import { type DigitRecords, DigitTraining } from "./digit-training.ts";
import { type OpenedBackend, openBackend } from "./open-backend.ts";
import { SecondRank } from "./second-rank.ts";
import { TrainingLoop } from "./training-loop.ts";

/** Number of test digits shown on the page. */
const shownCount = 60;

/** Executes the commands of a page. Owns a backend, the digits, and one training run at a time. */
export class TrainingService {
  private readonly report: (message: Report, transfer?: Transferable[]) => void;
  private ready: { readonly opened: OpenedBackend; readonly records: DigitRecords } | undefined;
  private second: SecondRank | undefined;
  private current: { readonly training: DigitTraining; readonly loop: TrainingLoop } | undefined;

  constructor(report: (message: Report, transfer?: Transferable[]) => void) {
    this.report = report;
  }

  async execute(command: Command): Promise<void> {
    switch (command.type) {
      case "open":
        return this.open(command.backend, command.digits);
      case "reset":
        return this.reset(command.settings);
      case "train":
        return this.train();
      case "pause":
        return this.pause();
      case "read":
        return this.expect(this.current, "reset").loop.read(command.pixels);
      case "save":
        return this.save();
    }
  }

  private async open(backend: BackendWish, digits: string): Promise<void> {
    const [opened, records] = await Promise.all([openBackend(backend), fetchMnist(digits)]);
    this.ready = { opened, records };
    const { inputs, labels } = records.test.fields;
    this.report({
      type: "opened",
      backend: opened.kind,
      device: opened.device,
      ...(opened.notice !== undefined && { notice: opened.notice }),
      ...("missing" in opened.shared && { oneRankOnly: opened.shared.missing }),
      trainCount: records.train.count,
      testCount: records.test.count,
      shown: { pixels: inputs!.bytes.slice(0, shownCount * 784), labels: labels!.bytes.slice(0, shownCount) },
    });
  }

  private async reset(settings: Settings): Promise<void> {
    const { opened, records } = this.expect(this.ready, "open");
    await this.current?.loop.pause();
    this.current?.training.release();
    const { backend, bytesInUse, shared } = opened;
    const context = { backend, records, settings };
    const twoRanks = settings.ranks === 2;
    if (twoRanks && "missing" in shared) throw new ArgumentError(`two ranks cannot train here: ${shared.missing}`);
    if (twoRanks && !("missing" in shared))
      this.second ??= new SecondRank(shared, records, (message) => this.fail(new Error(message)));
    const communicator = twoRanks ? await this.second!.begin(settings) : undefined;
    const training = await DigitTraining.begin({ ...context, ...(communicator && { communicator }) });
    const onStep = twoRanks ? (): void => this.second!.step() : undefined;
    const loop = new TrainingLoop({ training, shownCount, bytesInUse, report: this.report, ...(onStep && { onStep }) });
    this.current = { training, loop };
    this.report({ type: "reset", parameterCount: training.parameterCount });
    await loop.evaluate();
    this.report({ type: "standstill", step: 0 });
  }

  private train(): void {
    const { loop } = this.expect(this.current, "reset");
    loop.start().catch((error: unknown) => this.fail(error));
  }

  private async pause(): Promise<void> {
    const { training, loop } = this.expect(this.current, "reset");
    await loop.pause();
    await loop.evaluate();
    this.report({ type: "standstill", step: training.stepCount });
  }

  private async save(): Promise<void> {
    const { training, loop } = this.expect(this.current, "reset");
    const wasRunning = loop.isRunning;
    await loop.pause();
    const file = await training.save();
    if (wasRunning) this.train();
    this.report({ type: "saved", file }, [file.buffer]);
  }

  /** Reports an error. No further message is sent. */
  fail(error: unknown): void {
    this.report({ type: "failed", message: error instanceof Error ? error.message : String(error) });
  }

  private expect<T>(value: T | undefined, before: Command["type"]): T {
    if (value === undefined)
      throw new ArgumentError(`the command "${before}" must come before this one; send it first`);
    return value;
  }
}
