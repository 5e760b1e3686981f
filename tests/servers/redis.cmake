# ---- Redis ----
# One folder of servers for each kind, started once for each ctest run.
set(WT_REDIS_DIR ${CMAKE_BINARY_DIR}/redis)
string(LENGTH ${WT_REDIS_DIR} length)
if(length GREATER 70)
    string(MD5 hash ${CMAKE_BINARY_DIR})
    string(SUBSTRING ${hash} 0 8 hash)
    set(WT_REDIS_DIR /tmp/wafertier-redis-${hash})
endif()
foreach(kind single acl tls cluster small)
    set(folder ${WT_REDIS_DIR}/${kind})
    add_test(NAME redis_${kind}_start COMMAND bash -c
        "'${CMAKE_CURRENT_SOURCE_DIR}/redis' wipe '${folder}' && '${CMAKE_CURRENT_SOURCE_DIR}/redis' start '${folder}' ${kind}")
    add_test(NAME redis_${kind}_stop COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/redis wipe ${folder})
    set_tests_properties(redis_${kind}_start PROPERTIES FIXTURES_SETUP redis_${kind})
    set_tests_properties(redis_${kind}_stop PROPERTIES FIXTURES_CLEANUP redis_${kind})
    set_tests_properties(redis_${kind}_start redis_${kind}_stop PROPERTIES TIMEOUT 60 SKIP_RETURN_CODE 77
        LABELS servers RESOURCE_LOCK redis_${kind})
endforeach()

# wt_redis_test(NAME KIND kind COMMAND command...): runs alone on the servers of that kind.
function(wt_redis_test name)
    cmake_parse_arguments(T "" "TIMEOUT;KIND" "COMMAND" ${ARGN})
    set(here ${CMAKE_CURRENT_FUNCTION_LIST_DIR})
    add_test(NAME ${name} COMMAND ${here}/with_redis ${T_COMMAND})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${T_TIMEOUT} SKIP_RETURN_CODE 77 LABELS servers
        FIXTURES_REQUIRED redis_${T_KIND} RESOURCE_LOCK redis_${T_KIND}
        ENVIRONMENT "WT_TEST_REDIS=${WT_REDIS_DIR}/${T_KIND};WT_TEST_SERVERS=${here}")
endfunction()

add_executable(test_contract_redis ../contract/contract.c ../contract/contract_read.c ../contract/contract_write.c
    ../contract/contract_flow.c ../contract/contract_other.c fixture_redis.c)
target_link_libraries(test_contract_redis PRIVATE wt_options wt_tiers PkgConfig::CMOCKA)
set_target_properties(test_contract_redis PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
foreach(kind single acl tls cluster)
    wt_redis_test(contract_redis_${kind} KIND ${kind} TIMEOUT 300 COMMAND $<TARGET_FILE:test_contract_redis> ${kind})
endforeach()
wt_redis_test(contract_redis_unix KIND single TIMEOUT 300 COMMAND $<TARGET_FILE:test_contract_redis> unix)
