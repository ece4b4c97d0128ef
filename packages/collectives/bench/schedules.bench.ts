// Measures the time to build the schedule of one rank, as a function of the world size. Run: node
// bench/schedules.bench.ts
import { measure, printMeasurement } from "@skein/measuring";
import { algorithms } from "../src/algorithms.ts";
import { sentMessages } from "../src/schedule.ts";
import { messageEnds, parametersOf } from "../test/world.ts";

const elementCount = 25_000_000;

for (const { name, kind, schedule } of algorithms) {
  for (const worldSize of [2, 4, 8, 16, 32, 64]) {
    const schedules = Array.from({ length: worldSize }, (_, rank) =>
      schedule(parametersOf(rank, worldSize, elementCount)),
    );
    const [sends, receives] = [messageEnds(schedules, "send"), messageEnds(schedules, "receive")];
    const alone = sends.findIndex((end, i) => end !== receives[i]);
    if (sends.length !== receives.length || alone !== -1)
      throw new Error(
        `${name} on ${worldSize} ranks: ${sends.length} sends, ${receives.length} receives; ${sends[alone]} is not received`,
      );
    const parameters = parametersOf(0, worldSize, elementCount); // Rank 0 is the root, if there is one.
    const label = kind === name ? name : `${name} (${kind})`;
    printMeasurement(
      `${label}, P=${worldSize}, ${sentMessages(schedules[0]!)} messages`,
      await measure(() => schedule(parameters), { samples: 11, sampleMilliseconds: 5 }),
    );
  }
}
