import { layJobs } from "../studies/job-file.ts";
import { resultOf as resultIn } from "../studies/results-file.ts";
import type { Run } from "../studies/run.ts";
import type { PlanOptions } from "../studies/study.ts";
import {
  type Contestant,
  contestants,
  expectedSeconds,
  firstSettings,
  jobOf,
  quickJob,
  type Setting,
  trainSamples,
} from "./contestants.ts";
import { chooseSetting, searchName } from "./search-plan.ts";

/** Training run of a method with the setting that the search chose, evaluated on test samples. */
export interface LargeBatchRun extends Run {
  readonly contestant: Contestant;
  readonly setting: Setting;
}

export const planLargeBatch = ({ quick, seeds, resultsOf }: PlanOptions): LargeBatchRun[] =>
  contestants.flatMap((contestant) => {
    const choice = chooseSetting(contestant, quick, (run) => resultIn(resultsOf(searchName), run));
    const setting = choice?.best.run.setting ?? firstSettings(contestant)[0]!;
    return seeds.map((seed) => ({
      name: `${contestant.name}/seed-${seed}`,
      job: layJobs(jobOf(contestant, setting, trainSamples), quick ? quickJob : {}, { seed }),
      core: contestant.core,
      warmUpSteps: 5,
      minutes: 30,
      expected: { seconds: quick ? 5 : expectedSeconds(trainSamples), prefix: contestant.name },
      ...(choice === undefined && {
        lacks: `its setting has not been sought as it is defined now; first run pnpm bench ${searchName}${quick ? " --quick" : ""}${contestant.core ? "" : " --all"}`,
      }),
      contestant,
      setting,
    }));
  });
