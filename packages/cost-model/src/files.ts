export { formatHardwareFile, HardwareFileError, parseHardwareFile } from "./hardware/parse-hardware-file.ts";
