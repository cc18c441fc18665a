// Replaces an assembly's references to a runtime's own assemblies by the reference assemblies that the .NET SDK gives to projects:
//
//     refer.exe IN OUT [NAME=VERSION...] -- FACADE...
//
// FACADE is an assembly that forwards types, such as netstandard.dll of a runtime. Each type reference of IN to another assembly changes to
// the first FACADE that forwards the type. If no FACADE forwards the type, the reference stays unchanged; if SDK projects do not know the
// referenced assembly, the program fails. NAME=VERSION replaces the version of the facade NAME. The identity of the module (MVID) is
// computed from its content, and its time stamp is 0, so the same sources give the same bytes.

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
            // Data beside the code in a runtime's images serves only that runtime. Mark the output as code only.
            module.Attributes |= ModuleAttributes.ILOnly;
            module.Write(arguments[1], new WriterParameters { DeterministicMvid = true, Timestamp = 0 });
        }
        return 0;
    }

    /// <summary>Redirects the type references. Returns the types that only a private assembly has.</summary>
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
