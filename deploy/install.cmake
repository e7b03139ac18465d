# What `make install` (cmake --install) puts where; included by CMakeLists.txt. Paths follow GNUInstallDirs
# below PREFIX; DESTDIR goes before them. Parts that this tree or build does not have are left out.

if(TARGET phalanx)
  install(TARGETS phalanx RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
# The shim goes beside it: that is where the agent looks first, whatever the prefix.
if(TARGET phalanx-shim)
  install(TARGETS phalanx-shim RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# --- libphalanx: header, shared and static library, pkg-config file
# ---------------------------------------------------
if(TARGET phalanx_shared)
  install(TARGETS phalanx_shared phalanx_static
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  # The file finds its prefix from where it lies, so that it also works below a DESTDIR.
  file(RELATIVE_PATH PHX_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  configure_file(${CMAKE_SOURCE_DIR}/deploy/phalanx.pc.in ${CMAKE_BINARY_DIR}/phalanx.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/phalanx.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/phalanx DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h")

# --- Python: one folder that works for every Python 3; Debian's is on the default path below /usr
# -----------------------
set(PHX_PYTHONDIR lib/python3/dist-packages CACHE STRING "Where python/phalanx goes, below the prefix")
install(DIRECTORY ${CMAKE_SOURCE_DIR}/python/phalanx DESTINATION ${PHX_PYTHONDIR}
  FILES_MATCHING PATTERN "*.py" PATTERN "__pycache__" EXCLUDE)

# --- systemd units, their settings, and the example cluster files
# -------------------------------------------------------
set(PHX_UNITDIR lib/systemd/system CACHE STRING "Where systemd units go, below the prefix")
foreach(unit phalanx-controller.service phalanx-agent.service)
  # When installing, because `cmake --install --prefix` may change the prefix.
  install(CODE "set(PHX_BINDIR \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
    set(PHX_SHAREDIR \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/phalanx\")
    configure_file(\"${CMAKE_SOURCE_DIR}/deploy/systemd/${unit}.in\" \"${CMAKE_BINARY_DIR}/${unit}\" @ONLY)")
  install(FILES ${CMAKE_BINARY_DIR}/${unit} DESTINATION ${PHX_UNITDIR})
endforeach()
install(FILES ${CMAKE_SOURCE_DIR}/deploy/systemd/controller.env ${CMAKE_SOURCE_DIR}/deploy/systemd/agent.env
  DESTINATION ${CMAKE_INSTALL_DATADIR}/phalanx/systemd)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/clusters ${CMAKE_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DATADIR}/phalanx
  PATTERN "__pycache__" EXCLUDE)

# --- manual page, completion, documents
# ---------------------------------------------------------------------------------
if(EXISTS ${CMAKE_SOURCE_DIR}/docs/phalanx.1)
  install(FILES ${CMAKE_SOURCE_DIR}/docs/phalanx.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
install(FILES ${CMAKE_SOURCE_DIR}/deploy/completion/phalanx
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
