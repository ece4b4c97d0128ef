// One median in all that is published: that of an even count lies between the two in the middle.
export { median } from "@skein/cost-model";
