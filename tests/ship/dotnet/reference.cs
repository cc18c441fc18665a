// Makes a reference assembly, against which a project of the SDK compiles, from the assemblies of a runtime. The result is the core
// library under the name of a facade, as if the facade itself contained the types.
//
//     reference.exe System.Private.CoreLib.dll FACADE.dll OUT.dll
//     reference.exe FILE                          prints the assemblies that FILE refers to

using System;
using Mono.Cecil;

static class Reference
{
    static void Main(string[] arguments)
    {
        if (arguments.Length == 1)
        {
            using (var module = ModuleDefinition.ReadModule(arguments[0]))
                foreach (var reference in module.AssemblyReferences)
                    Console.WriteLine(reference.Name + " " + reference.Version);
            return;
        }
        using (var facade = ModuleDefinition.ReadModule(arguments[1]))
        using (var core = ModuleDefinition.ReadModule(arguments[0]))
        {
            var name = facade.Assembly.Name;
            core.Assembly.Name = new AssemblyNameDefinition(name.Name, name.Version) { PublicKey = name.PublicKey };
            core.Name = name.Name + ".dll";
            core.Attributes |= ModuleAttributes.ILOnly;
            core.Write(arguments[2]);
        }
    }
}
