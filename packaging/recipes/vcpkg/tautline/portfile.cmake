# Tested: CMake runs the commands of this file with stand-ins for vcpkg's functions (tests/ship/distro/vcpkg.cmake), and a program
# finds the result by find_package(ZeroMQ). Not tested: vcpkg itself, which was not available.
#
# There is no release to fetch, so TAUTLINE_SOURCE in the environment names a clone. vcpkg brings neither cargo nor make: install both.
# The port has the files of zeromq, so the two cannot be installed together.

if(NOT EXISTS "$ENV{TAUTLINE_SOURCE}/Cargo.toml")
  message(FATAL_ERROR "tautline: set TAUTLINE_SOURCE to a clone of the repository, and VCPKG_KEEP_ENV_VARS=TAUTLINE_SOURCE")
endif()
set(SOURCE_PATH "$ENV{TAUTLINE_SOURCE}")
find_program(MAKE make REQUIRED)

vcpkg_execute_required_process(
  COMMAND "${MAKE}" build "CARGO_TARGET_DIR=${CURRENT_BUILDTREES_DIR}/target"
  WORKING_DIRECTORY "${SOURCE_PATH}"
  LOGNAME "build-${TARGET_TRIPLET}")
vcpkg_execute_required_process(
  COMMAND "${MAKE}" install "CARGO_TARGET_DIR=${CURRENT_BUILDTREES_DIR}/target" "PREFIX=${CURRENT_PACKAGES_DIR}"
  WORKING_DIRECTORY "${SOURCE_PATH}"
  LOGNAME "install-${TARGET_TRIPLET}")

# vcpkg has its own manifest, and wants licences in the file `copyright`. The CMake package stays in its folder, because it finds the
# libraries relative to it. The package has a target for each library, so both libraries stay, whichever the triplet links.
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/share/tautline" "${CURRENT_PACKAGES_DIR}/share/doc" "${CURRENT_PACKAGES_DIR}/lib/.debug")
set(VCPKG_POLICY_SKIP_MISPLACED_CMAKE_FILES_CHECK enabled)
set(VCPKG_POLICY_SKIP_LIB_CMAKE_MERGE_CHECK enabled)
set(VCPKG_BUILD_TYPE release)

vcpkg_fixup_pkgconfig()
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE-MIT" "${SOURCE_PATH}/LICENSE-APACHE" "${SOURCE_PATH}/packaging/THIRD-PARTY.txt")
