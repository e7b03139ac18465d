# What `make install` (cmake --install) puts where; included by CMakeLists.txt. Paths follow GNUInstallDirs
# below PREFIX; DESTDIR goes before them. Parts that this tree or build does not have are left out.
# Whatever depends on PREFIX is decided when installing: `cmake --install --prefix` may change it.

if(TARGET phalanx)
  install(TARGETS phalanx phalanx-full RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
# `phalanx` looks for phalanx-full beside itself, and the agent looks there for the shim first.
if(TARGET phalanx-shim)
  install(TARGETS phalanx-shim RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
# Tasks look for commands in PREFIX/libexec/phalanx last: the examples' program is there.
if(TARGET train)
  install(TARGETS train RUNTIME DESTINATION libexec/phalanx)
endif()

# --- libphalanx: header, shared and static library, pkg-config file
if(TARGET phalanx_shared)
  install(TARGETS phalanx_shared phalanx_static phalanx_fabric_shared phalanx_fabric_static
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  # The file finds its prefix from its own place, so that it also works below a DESTDIR.
  file(RELATIVE_PATH PHX_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  configure_file(${CMAKE_SOURCE_DIR}/deploy/phalanx.pc.in ${CMAKE_BINARY_DIR}/phalanx.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/phalanx.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
if(TARGET phalanx_flow_shared)
  install(TARGETS phalanx_flow_shared phalanx_flow_static
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET phalanx_pjrt)
  install(TARGETS phalanx_pjrt LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/phalanx DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h")

# --- Python: a folder below PREFIX on the path of the system's own interpreter, or Debian's folder for packages
set(PHX_PYTHON_FOLDER "" CACHE STRING "Where python/phalanx goes, below the prefix; empty: ask /usr/bin/python3")
install(CODE "
  set(folder \"${PHX_PYTHON_FOLDER}\")
  if(NOT folder AND NOT CMAKE_INSTALL_PREFIX STREQUAL \"/usr\")
    execute_process(COMMAND /usr/bin/python3 -c
      \"import site, sys
top = sys.argv[1]
print(next((f[len(top):] for f in site.getsitepackages() if f.startswith(top)), ''))\"
      \"\${CMAKE_INSTALL_PREFIX}/\" OUTPUT_VARIABLE folder ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
  if(NOT folder)
    set(folder lib/python3/dist-packages)
  endif()
  file(INSTALL DESTINATION \"\${CMAKE_INSTALL_PREFIX}/\${folder}\" TYPE DIRECTORY
    FILES \"${CMAKE_SOURCE_DIR}/python/phalanx\" FILES_MATCHING PATTERN \"*.py\" PATTERN \"__pycache__\" EXCLUDE)")

# --- systemd units and their settings
set(PHX_UNITDIR lib/systemd/system CACHE STRING "Where systemd units go, below the prefix")
foreach(unit phalanx-controller.service phalanx-etcd.service phalanx-agent.service)
  install(CODE "set(PHX_BINDIR \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
    set(PHX_SHAREDIR \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/phalanx\")
    configure_file(\"${CMAKE_SOURCE_DIR}/deploy/systemd/${unit}.in\" \"${CMAKE_BINARY_DIR}/${unit}\" @ONLY)")
  install(FILES ${CMAKE_BINARY_DIR}/${unit} DESTINATION ${PHX_UNITDIR})
endforeach()
install(FILES ${CMAKE_SOURCE_DIR}/deploy/systemd/sysusers.conf DESTINATION lib/sysusers.d RENAME phalanx.conf)
install(FILES ${CMAKE_SOURCE_DIR}/deploy/systemd/controller.env ${CMAKE_SOURCE_DIR}/deploy/systemd/controller-ha.env
  ${CMAKE_SOURCE_DIR}/deploy/systemd/etcd.env ${CMAKE_SOURCE_DIR}/deploy/systemd/agent.env
  DESTINATION ${CMAKE_INSTALL_DATADIR}/phalanx/systemd)

# --- cluster files, examples, a dashboard, alerts, and operators' hooks to copy from
install(DIRECTORY ${CMAKE_SOURCE_DIR}/clusters ${CMAKE_SOURCE_DIR}/examples ${CMAKE_SOURCE_DIR}/deploy/grafana
  ${CMAKE_SOURCE_DIR}/deploy/prometheus DESTINATION ${CMAKE_INSTALL_DATADIR}/phalanx PATTERN "__pycache__" EXCLUDE)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/deploy/hooks ${CMAKE_SOURCE_DIR}/deploy/slurm
  ${CMAKE_SOURCE_DIR}/deploy/kubernetes DESTINATION ${CMAKE_INSTALL_DATADIR}/phalanx
  USE_SOURCE_PERMISSIONS)
install(CODE "
  set(file \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/phalanx/examples/pytorch/jobset.yaml\")
  file(READ \"\$ENV{DESTDIR}\${file}\" text)
  string(REPLACE /usr/share/phalanx/ \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/phalanx/\"
    text \"\${text}\")
  file(WRITE \"\$ENV{DESTDIR}\${file}\" \"\${text}\")")

# --- manual page, completion, documents
if(EXISTS ${CMAKE_SOURCE_DIR}/docs/phalanx.1)
  install(FILES ${CMAKE_SOURCE_DIR}/docs/phalanx.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
install(FILES ${CMAKE_SOURCE_DIR}/deploy/completion/phalanx
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING
  PATTERN "*.md" PATTERN "*.svg")

# --- the loader's cache, except for a package (DESTDIR), whose installation updates it
install(CODE "
  if(\"\$ENV{DESTDIR}\" STREQUAL \"\")
    find_program(PHX_LDCONFIG ldconfig PATHS /sbin /usr/sbin)
    if(PHX_LDCONFIG)
      execute_process(COMMAND \${PHX_LDCONFIG} RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
      if(failed)
        message(STATUS \"Run ldconfig as root: programs find libphalanx.so.0 after that\")
      endif()
    endif()
  endif()")
