export {
  muonCoefficients,
  newtonSchulz,
  type NewtonSchulzOptions,
  type QuinticCoefficients,
} from "./inverse/newton-schulz.ts";
