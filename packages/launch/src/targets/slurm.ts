import { exitCodes, shellQuote, stopCodes } from "@skein/cli/node";
import type { LaunchPlan } from "./launch-plan.ts";
import type { Launch } from "./launch-target.ts";
import { coordinatorVariable, rankArguments, secretVariable } from "./rank-command.ts";

/**
 * Number of seconds before the time limit at which Slurm signals the job, enough to save a checkpoint and to queue the
 * job again.
 */
const warningSeconds = 120;

const twoDigits = (value: number): string => String(value).padStart(2, "0");

const clock = (seconds: number): string =>
  [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60].map(twoDigits).join(":");

/**
 * Converts a name to a word without special characters, because sbatch does not handle quotes in directives reliably.
 */
const plainWord = (text: string): string => text.replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^-+/, "") || "skein";

const directives = (plan: LaunchPlan): string[] => {
  const perNode = plan.nodes && plan.processes / plan.nodes;
  const perTask = plan.ranks / plan.processes;
  const memory = plan.memoryBytes && Math.ceil(plan.memoryBytes / plan.cpus / 2 ** 20);
  return [
    `--job-name=${plainWord(plan.name)}`,
    `--ntasks=${plan.processes}`,
    ...(plan.nodes === undefined ? [] : [`--nodes=${plan.nodes}`, `--ntasks-per-node=${perNode}`]),
    `--cpus-per-task=${plan.cpus * perTask}`,
    ...(memory === undefined ? [] : [`--mem-per-cpu=${memory}M`]),
    ...(plan.gpus === 0 ? [] : [`--gres=${plan.gpuResource ?? "gpu"}:${plan.gpus * perTask * perNode!}`]),
    ...(plan.seconds === undefined ? [] : [`--time=${clock(plan.seconds)}`]),
    ...(plan.queue === undefined ? [] : [`--partition=${plan.queue}`]),
    "--requeue",
    `--signal=B:USR1@${warningSeconds}`,
    "--open-mode=append",
  ].map((directive) => `#SBATCH ${directive}`);
};

/**
 * Returns the output folder of the run as a word of bash. Default: a folder named after the job id, which stays the
 * same when the job is queued again.
 */
const outputWord = ({ output, name }: LaunchPlan): string =>
  output === undefined ? `${shellQuote(`runs/${plainWord(name)}`)}/"$SLURM_JOB_ID"` : shellQuote(output);

const script = (plan: LaunchPlan): string => {
  const words = [
    ...plan.program,
    ...rankArguments(plan, { job: plan.job.path, output: "", certificates: plan.certificates }),
  ];
  const output = words.lastIndexOf("--output") + 1; // replaced by the script's variable
  const command = words.map((word, i) => (i === output ? '"$output"' : shellQuote(word))).join(" ");
  // Jobs that share a node must not share a port. The port is below the range that systems assign dynamically.
  const port = plan.port ?? "$((20000 + SLURM_JOB_ID % 10000))";
  return `#!/bin/bash
${directives(plan).join("\n")}
set -u -o pipefail

output=${outputWord(plan)}
mkdir -p "$output"
counter="$output/failures-$SLURM_JOB_ID"

mapfile -t hosts < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
export ${coordinatorVariable}="\${hosts[0]}:${port}"
# Generated for each attempt, so that the secret is in no file and on no command line.
${secretVariable}="$(od -An -v -N32 -tx1 /dev/urandom | tr -d ' \\n')"
export ${secretVariable}

# Near its time limit the job saves, and continues in its next allocation. Only a signal to the step reaches the ranks: SIGTERM to srun itself
# would kill the ranks.
stopping=no
trap 'stopping=yes; scancel --signal=TERM "$SLURM_JOB_ID.0"' USR1

# No rank is killed because another rank ended: it must report the lost rank, and finish its part of a checkpoint.
srun --mpi=pmix --cpus-per-task=${(plan.cpus * plan.ranks) / plan.processes} --export=ALL --kill-on-bad-exit=0 --wait=60 \\
  ${command} &
step=$!

while :; do
  asked=$stopping
  code=0
  wait "$step" || code=$?
  [[ $asked == "$stopping" ]] && break # otherwise the signal has ended this wait, and the step is still saving
done

if [[ $stopping == yes && $code =~ ^(${stopCodes.join("|")})$ ]]; then
  scontrol requeue "$SLURM_JOB_ID"
  exit
fi
case $code in
${[exitCodes.ok, exitCodes.usage, ...stopCodes].join(" | ")}) exit "$code" ;; # done, usage error, or stopped by hand; another attempt may cure all other failures
esac

# Restarts are limited only while none brings a newer checkpoint.
step=$(find "$output/checkpoints" -maxdepth 1 -name 'step-*' 2>/dev/null | sed 's/.*-0*\\([0-9]\\)/\\1/' | sort -n | tail -n 1)
read -r failures reached < <(cat "$counter" 2>/dev/null || echo 0 0)
((\${step:-0} > \${reached:-0})) && failures=0
failures=$((failures + 1))
if ((failures > ${plan.maxRestarts})); then
  echo "a rank failed with code $code, and all restarts (${plan.maxRestarts}) are used up; check the log, then continue with sbatch" >&2
  exit "$code"
fi
echo "$failures \${step:-0}" >"$counter"
echo "a rank failed with code $code; queued again (restart $failures of ${plan.maxRestarts})" >&2
scontrol requeue "$SLURM_JOB_ID"
`;
};

/**
 * Converts a plan to a batch script for Slurm. After a failure or at its time limit, the job is queued again with the
 * same job id. The number of failures without a newer checkpoint is limited by `maxRestarts`; reaching the time limit
 * does not count as a failure.
 */
export const slurm = (plan: LaunchPlan): Launch => {
  const text = script(plan);
  return {
    files: [{ name: `${plainWord(plan.name)}.sbatch`, text }],
    submission: { command: ["sbatch"], input: text },
  };
};
