import { layJobs } from "../studies/job-file.ts";
import { resultOf as resultIn } from "../studies/results-file.ts";
import type { Run } from "../studies/run.ts";
import type { PlanOptions } from "../studies/study.ts";
import { type Contestant, contestants, expectedSeconds, jobOf, quickJob } from "./contestants.ts";
import { chooseRate, searchName } from "./search-plan.ts";

/** Training run of a variant with the rate that the search chose, evaluated on test samples. */
export interface QualityRun extends Run {
  readonly contestant: Contestant;
  readonly peak: number;
}

const lackOf = ({ name }: Contestant, quick: boolean): string =>
  `its learning rate has not been sought as it is defined now; first run pnpm bench ${searchName}${quick ? " --quick" : ""}, for this row alone with --only ${name}`;

export const planQuality = ({ quick, seeds, resultsOf }: PlanOptions): QualityRun[] =>
  contestants.flatMap((contestant) => {
    const choice = chooseRate(contestant, quick, (run) => resultIn(resultsOf(searchName), run));
    const peak = choice?.best.run.peak ?? Number.NaN;
    return seeds.map((seed) => ({
      name: `${contestant.name}/seed-${seed}`,
      job: layJobs(jobOf(contestant, peak), quick ? quickJob : {}, { seed }),
      core: true,
      warmUpSteps: 5,
      minutes: 20,
      expected: { seconds: quick ? 5 : expectedSeconds, prefix: contestant.name },
      ...(choice === undefined && { lacks: lackOf(contestant, quick) }),
      contestant,
      peak,
    }));
  });
