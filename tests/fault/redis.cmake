# Faults of Redis: each group starts servers of its own.
add_executable(test_fault_redis redis_kit.c redis_reading.c redis_server.c redis_rights.c redis_data.c redis_cluster.c
    redis_hostile.c ../servers/proxy.c)
target_link_libraries(test_fault_redis PRIVATE wt_options wt_tiers PkgConfig::CMOCKA Threads::Threads)
set_target_properties(test_fault_redis PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
foreach(group server rights memory data proxy cluster hostile)
    add_test(NAME fault_redis_${group} COMMAND test_fault_redis ${group})
    set_tests_properties(fault_redis_${group} PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77 LABELS servers
        ENVIRONMENT "WT_TEST_SERVERS=${CMAKE_SOURCE_DIR}/tests/servers")
endforeach()
