// Makes an assembly refer to the reference assemblies that the .NET SDK gives to projects, where its compiler had the runtime's own:
//
//     refer.exe IN OUT [NAME=VERSION...] -- FACADE...
//
// FACADE is an assembly that forwards types, as netstandard.dll of a runtime does. Each type that IN takes from elsewhere is taken from the
// first of them that forwards it. Where none does it stays with the assembly that IN names, unless no project knows that one, which is an
// error. NAME=VERSION is the version to ask of a facade, if not its own. The identity of the module (MVID) is made of its content, and its
// time is 0, so that the same sources give the same bytes.

using System;
using System.Collections.Generic;
using System.Linq;
using Mono.Cecil;

static class Refer
{
    static int Main(string[] arguments)
    {
        int dashes = Array.IndexOf(arguments, "--");
        if (dashes < 2)
        {
            Console.Error.WriteLine("usage: refer.exe IN OUT [NAME=VERSION...] -- FACADE...");
            return 2;
        }
        var versions = arguments.Take(dashes).Skip(2).Select(pair => pair.Split('=')).ToDictionary(pair => pair[0], pair => new Version(pair[1]));
        var facades = arguments.Skip(dashes + 1).Select(file => new Facade(file, versions)).ToList();
        using (var module = ModuleDefinition.ReadModule(arguments[0]))
        {
            var missing = Change(module, facades);
            if (missing.Count > 0)
            {
                Console.Error.WriteLine(arguments[0] + ": no facade has " + string.Join(", ", missing));
                return 1;
            }
            // What is in the runtime's own images beside the code is for that runtime alone.
            module.Attributes |= ModuleAttributes.ILOnly;
            module.Write(arguments[1], new WriterParameters { DeterministicMvid = true, Timestamp = 0 });
        }
        return 0;
    }

    /// <summary>The types that only a private assembly has.</summary>
    static List<string> Change(ModuleDefinition module, List<Facade> facades)
    {
        var missing = new List<string>();
        var used = new HashSet<string>();
        foreach (var type in module.GetTypeReferences().Where(type => type.Scope is AssemblyNameReference))
        {
            var facade = facades.FirstOrDefault(one => one.Has(type.FullName));
            if (facade != null)
                type.Scope = Reference(module, facade.Name);
            else if (type.Scope.Name.StartsWith("System.Private.", StringComparison.Ordinal) || type.Scope.Name == "mscorlib")
                missing.Add(type.FullName);
            used.Add(type.Scope.Name);
        }
        foreach (var reference in module.AssemblyReferences.Where(reference => !used.Contains(reference.Name)).ToList())
            module.AssemblyReferences.Remove(reference);
        return missing;
    }

    static AssemblyNameReference Reference(ModuleDefinition module, AssemblyNameReference name)
    {
        var reference = module.AssemblyReferences.FirstOrDefault(one => one.Name == name.Name);
        if (reference == null)
        {
            reference = new AssemblyNameReference(name.Name, name.Version) { PublicKeyToken = name.PublicKeyToken };
            module.AssemblyReferences.Add(reference);
        }
        return reference;
    }

    /// <summary>An assembly that forwards types.</summary>
    sealed class Facade
    {
        public readonly AssemblyNameReference Name;
        readonly HashSet<string> types;

        public Facade(string file, Dictionary<string, Version> versions)
        {
            using (var module = ModuleDefinition.ReadModule(file))
            {
                Version version;
                var own = module.Assembly.Name;
                Name = new AssemblyNameReference(own.Name, versions.TryGetValue(own.Name, out version) ? version : own.Version)
                {
                    PublicKeyToken = own.PublicKeyToken
                };
                types = new HashSet<string>(module.ExportedTypes.Where(type => type.IsForwarder).Select(type => type.FullName));
            }
        }

        public bool Has(string type)
        {
            return types.Contains(type);
        }
    }
}
