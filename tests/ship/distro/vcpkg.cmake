# Runs a portfile with stand-ins for the functions of vcpkg that it calls:
# cmake -DPORT=DIR -DPREFIX=DIR -DBUILD=DIR -P vcpkg.cmake
set(TARGET_TRIPLET x64-linux)
set(VCPKG_LIBRARY_LINKAGE static)
set(CURRENT_PORT_DIR "${PORT}")
set(CURRENT_PACKAGES_DIR "${PREFIX}")
set(CURRENT_BUILDTREES_DIR "${BUILD}")

function(vcpkg_execute_required_process)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "WORKING_DIRECTORY;LOGNAME" "COMMAND")
  execute_process(COMMAND ${arg_COMMAND} WORKING_DIRECTORY "${arg_WORKING_DIRECTORY}" RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${arg_LOGNAME}: ${code}")
  endif()
endfunction()

# Makes paths relative to the file, as vcpkg does.
function(vcpkg_fixup_pkgconfig)
  file(GLOB modules "${PREFIX}/lib/pkgconfig/*.pc")
  foreach(module ${modules})
    file(READ "${module}" text)
    string(REGEX REPLACE "prefix=${PREFIX}" "prefix=\${pcfiledir}/../.." text "${text}")
    file(WRITE "${module}" "${text}")
  endforeach()
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  foreach(file ${arg_FILE_LIST})
    file(READ "${file}" text)
    file(APPEND "${PREFIX}/share/tautline/copyright" "${text}")
  endforeach()
endfunction()

include("${PORT}/portfile.cmake")
