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
