import { expect, it } from "vitest";
import lock from "../package-lock.json";

interface Package {
  optionalDependencies?: Record<string, string>;
}

// Without them `npm ci` fails on every platform (npm 11) or installs nothing to run on others.
it("the lock file has the packages of all platforms", () => {
  const packages: Record<string, object> = lock.packages;
  const missing = Object.entries(packages).flatMap(([path, one]) =>
    Object.keys((one as Package).optionalDependencies ?? {}).filter(
      (name) => !(`node_modules/${name}` in packages) && !(`${path}/node_modules/${name}` in packages),
    ),
  );
  expect(missing).toEqual([]);
});
