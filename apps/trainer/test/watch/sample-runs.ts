import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** What a run may have been called by another tool. */
export const hostileName = `<script>window.stolen=1</script><img src=x onerror="window.stolen=2">`;

/** Lines of steps, as a run on MNIST writes them. */
export const sampleLines = (from: number, to: number, seed = 1): string => {
  let text = "";
  for (let step = from + 1; step <= to; step++) {
    const noise = Math.sin(step * 12.9898 * seed) * 0.5 + 0.5;
    const loss = 2.3 * Math.exp(-step / (100 + 60 * seed)) + 0.1 + 0.08 * noise;
    const seconds = 0.05 + 0.01 * noise;
    const lines: object[] = [
      {
        type: "step",
        step,
        epoch: 1 + Math.floor((step - 1) / 100),
        loss,
        seconds,
        samplesPerSecond: 64 / seconds,
        exposedSeconds: 0.01 * noise,
        dataSeconds: 0.002 * noise,
        residentBytes: 3e8 + 1e5 * step,
        "block-1.load_E.0": 10 + (step % 7),
        "block-1.load_E.1": 12 + (step % 5),
      },
      { type: "update", step, gradientNorm: 1 / step, learningRate: 1e-3 * Math.min(1, step / 50) },
    ];
    if (step % 20 === 0)
      for (const rank of [0, 1])
        lines.push({ type: `rank-${rank}`, step, seconds, ownSeconds: seconds - 0.01 * (rank + noise) });
    if (step % 50 === 0)
      lines.push({ type: "evaluation", step, loss: loss + 0.05, accuracy: 1 - 0.9 * Math.exp(-step / 150) });
    text += lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  }
  return text;
};

/** Write a run into a folder, as far as `steps`. */
export const writeSampleRun = (folder: string, steps: number, job: object, seed = 1): void => {
  mkdirSync(join(folder, "checkpoints/step-00000100"), { recursive: true });
  writeFileSync(join(folder, "job.json"), JSON.stringify(job));
  writeFileSync(join(folder, "metrics.jsonl"), sampleLines(0, steps, seed));
};

export const growSampleRun = (folder: string, from: number, to: number, seed = 1): void =>
  appendFileSync(join(folder, "metrics.jsonl"), sampleLines(from, to, seed));
