import { execFileSync } from "node:child_process";
import { appendFileSync, mkdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { RunFacts } from "@skein/run-files/node";
import { serveWatch, WatchedRuns } from "@skein/watch/node";
import type { Attack } from "./attack.ts";
import { countTries } from "./count-tries.ts";
import { type Draw, drawFrom } from "./draw.ts";

const files = [
  "metrics.jsonl",
  "job.json",
  "job.yaml",
  "summary.json",
  "provenance.json",
  "samples.jsonl",
  "histograms.jsonl",
  "trace.json",
  "checkpoints",
] as const;

const step = (number: number, more: object = {}): string =>
  `${JSON.stringify({ type: "step", step: number, ...more })}\n`;
const numbered = (count: number, prefix: string): object =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`${prefix}${i}`, i]));
const lines = (count: number, line: (index: number) => string): string =>
  Array.from({ length: count }, (_, i) => line(i)).join("");

type Make = (place: (name: string) => string, draw: Draw) => void;

/** Writers of hostile content into the files of a run, by name. */
const kinds: Readonly<Record<string, Make>> = {
  "deep JSON": (place, draw) => {
    const [name, count] = [files[1 + draw(8)]!, 1000 + draw(200_000)];
    const [open, close] = draw(2) === 0 ? ["[", "]"] : ['{"a":', "}"];
    writeFileSync(place(name), `${open.repeat(count)}1${close.repeat(draw(2) * count)}`);
  },
  "long values": (place, draw) => {
    const piece = ["a-", "https://a?", "options.", "\u001b[2J", "é"][draw(5)]!;
    const text = piece.repeat(1 + draw(1_000_000 / piece.length));
    writeFileSync(place("job.json"), JSON.stringify(draw(2) === 0 ? { name: text } : { [text]: { [text]: 1 } }));
  },
  YAML: (place, draw) => {
    const piece = ["k: 1\n", "[", "- ", "&a ", "? ", "*a,", "{a: ", '"', "# c\n", "a: &a [*a]\n", "<<: *a\n"][
      draw(11)
    ]!;
    const text = lines(1 + draw(40_000 / piece.length), (i) => (draw(2) === 0 ? piece : piece.replace("k", `k${i}`)));
    writeFileSync(place("job.yaml"), text);
  },
  "wide rows": (place, draw) => {
    const [many, wide] = [draw(60_000), 1 + draw(5000)];
    const text = `${lines(many, (i) => step(i))}${step(many, numbered(wide, "n"))}${step(many + 1, numbered(wide, "m"))}`;
    writeFileSync(place("metrics.jsonl"), text);
  },
  "many types": (place, draw) =>
    writeFileSync(
      place("metrics.jsonl"),
      lines(
        1 + draw(20_000),
        (i) => JSON.stringify({ type: `${i}`.repeat(1 + (i % 9)), step: i, [`v${i}`]: 1 }) + "\n",
      ),
    ),
  "back and forth": (place, draw) => {
    const [rows, wide] = [1 + draw(20_000), draw(4096)];
    writeFileSync(
      place("metrics.jsonl"),
      `${lines(rows, (i) => step(i, i === 0 ? numbered(wide, "n") : {}))}${lines(20_000, (i) => step(rows - (i % 3)))}`,
    );
  },
  "a pipe": (place, draw) => void execFileSync("mkfifo", [place(files[draw(files.length)]!)]),
  "a folder": (place, draw) => void mkdirSync(place(files[draw(files.length)]!)),
  "a device": (place, draw) => symlinkSync("/dev/zero", place(files[1 + draw(8)]!)),
  "a sparse file": (place, draw) => {
    const path = place(files[draw(8)]!);
    writeFileSync(path, "{");
    truncateSync(path, 2 ** (20 + draw(8)));
  },
  "random bytes": (place, draw) => {
    const bytes = Buffer.from(Array.from({ length: draw(3000) }, () => draw(256)));
    writeFileSync(place(files[draw(8)]!), bytes);
  },
  samples: (place, draw) => {
    const sample = { kind: "text", index: 0, prompt: "p".repeat(draw(2000)), truth: "", continuation: "" };
    const line = JSON.stringify({ type: "samples", step: 1, samples: Array.from({ length: 64 }, () => sample) });
    writeFileSync(place("samples.jsonl"), `${line}\n`.repeat(1 + draw(200)));
  },
  "odd facts": (place, draw) => {
    const odd = [
      null,
      -1,
      Number.MAX_VALUE,
      "x".repeat(100_000),
      [],
      {},
      { how: "failed", reason: "r".repeat(1_000_000) },
    ];
    const one = (): unknown => odd[draw(odd.length)];
    writeFileSync(
      place("provenance.json"),
      JSON.stringify({ pid: one(), host: one(), totalSteps: one(), ended: one() }),
    );
    writeFileSync(place("summary.json"), JSON.stringify({ testLoss: one(), testAccuracy: one() }));
  },
};

const patience = 60_000;

export const hostileRuns: Attack = {
  name: "hostile-runs",
  what: "hostile run folders lie beside a good run: the page answers for each, and shows the progress of the good one",
  fewTries: 26,
  inFullRun: true,
  tries: 400,
  run: async ({ count, seed, folder }) => {
    const root = join(folder, "runs");
    mkdirSync(join(root, "good"), { recursive: true });
    writeFileSync(join(root, "good/metrics.jsonl"), step(0));
    const runs = new WatchedRuns(root);
    const notes: string[] = [];
    const server = await serveWatch({
      runs,
      assets: new Map([["/", { type: "text/html", content: "page" }]]),
      port: 0,
      lookEvery: 20,
      findEvery: 20,
      note: (line) => notes.push(line),
    });
    const ask = async (path: string): Promise<number> => {
      const response = await fetch(`${server.url}${path}`, { signal: AbortSignal.timeout(patience) });
      for await (const _ of response.body!); // files that are too large may be truncated, but not in this response
      return response.status;
    };
    /**
     * Waits until the server shows a run as expected.
     * @throws Error on timeout.
     */
    const until = async (id: string, right: (facts: RunFacts) => boolean): Promise<void> => {
      const response = await fetch(`${server.url}api/events`, { signal: AbortSignal.timeout(patience) });
      let text = "";
      for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
        text += piece;
        const events = text.split("\n\n");
        text = events.pop()!;
        for (const event of events) {
          const data = /^data: (.*)$/m.exec(event)?.[1];
          const shownRuns = data === undefined ? [] : (JSON.parse(data) as { runs: RunFacts[] }).runs;
          if (shownRuns.some((facts) => facts.id === id && right(facts))) return;
        }
      }
      throw new Error(`${id} is not shown as expected`);
    };
    let outcome;
    try {
      outcome = await countTries({ count, seed }, async (number, draw) => {
        const [kind, make] = Object.entries(kinds)[number % Object.keys(kinds).length]!;
        const id = `${"abz"[draw(3)]}-${number}`;
        const place = (name: string): string => join(root, id, name);
        try {
          mkdirSync(join(root, id));
          make(place, drawFrom(`${seed} ${number} ${kind}`));
          if (kind !== "a pipe" && kind !== "a folder") appendFileSync(place("metrics.jsonl"), step(1));
          else if (draw(2) === 0) writeFileSync(place("metrics.jsonl"), step(1), { flag: "wx" });
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== "EEXIST" && (error as NodeJS.ErrnoException).code !== "EISDIR")
            throw error;
        }
        try {
          appendFileSync(join(root, "good/metrics.jsonl"), step(number + 1));
          await until("good", (facts) => facts.step === number + 1 && facts.fault === null);
          if ((await ask("")) !== 200) throw new Error("the page does not answer");
          await runs.find();
          if (runs.ids.includes(id)) {
            await runs.load(id);
            await until(id, (facts) => facts.loaded === null);
            const query = `run=${encodeURIComponent(id)}`;
            for (const path of ["rows", "run", "samples", "histograms"]) await ask(`api/${path}?${query}`);
            await ask(`api/trace?name=trace.json&${query}`);
          }
          const { fault } = runs.factsOf(id) ?? { fault: null };
          const isSlow = fault?.includes("takes longer") === true || notes.length > 0;
          return {
            counted: `${kind}${fault === null ? "" : ", a fault reported"}`,
            harm: isSlow ? `${kind}: ${fault} ${notes.splice(0).join()}` : undefined,
          };
        } catch (error) {
          return { counted: kind, harm: `${kind}: ${String(error)}` };
        } finally {
          rmSync(join(root, id), { recursive: true });
        }
      });
    } finally {
      await server.close();
    }
    return outcome;
  },
};
