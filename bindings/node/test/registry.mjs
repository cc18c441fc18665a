// An npm registry with only the packages of a folder, for the tests.
import { createHash } from "node:crypto"
import { execFileSync } from "node:child_process"
import { once } from "node:events"
import { readFileSync, readdirSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"

// Serves every `*.tgz` of a folder until the test `t` ends. Returns the address of the registry.
export async function registry(t, folder) {
  const packages = new Map()
  for (const file of readdirSync(folder).filter(name => name.endsWith(".tgz"))) {
    const text = execFileSync("tar", ["-xzOf", join(folder, file), "package/package.json"], { encoding: "utf8" })
    packages.set(JSON.parse(text).name, { file, description: JSON.parse(text) })
  }
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url.slice(1))
    if (path.endsWith(".tgz")) return response.end(readFileSync(join(folder, path)))
    const found = packages.get(path)
    if (found === undefined) return response.writeHead(404).end("{}")
    const { file, description } = found
    const integrity = `sha512-${createHash("sha512").update(readFileSync(join(folder, file))).digest("base64")}`
    const version = { ...description, dist: { tarball: `${address}/${file}`, integrity } }
    const { name } = description
    response.end(JSON.stringify({ name, "dist-tags": { latest: version.version }, versions: { [version.version]: version } }))
  })
  server.listen(0, "127.0.0.1")
  t.after(() => server.close())
  await once(server, "listening")
  const address = `http://127.0.0.1:${server.address().port}`
  return address
}
