import { describeVariants, largeTiles } from "../../../test/products.ts";

describeVariants(largeTiles);
