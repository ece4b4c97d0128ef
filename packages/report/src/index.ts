export type {
  Advice,
  CollectiveRow,
  MemoryBlock,
  MemoryProfile,
  OperatorRow,
  Phase,
  ProfileReport,
  Times,
} from "./profile-report.ts";
export { reportPage } from "./report-page.ts";
